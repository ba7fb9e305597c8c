// Runs Perfetto's trace processor, as its UI has it, in Node: requests come on standard input, answers go to standard
// output, both as the byte streams of its protocol. The argument is the folder of the UI.
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const folder = process.argv[2];

// What the bundle expects of a web worker.
class Request {
  open(_, url) { this.url = url; }
  send() { this.response = new Uint8Array(fs.readFileSync(path.join(folder, path.basename(this.url)))).buffer; }
}
const port = {postMessage: (bytes) => fs.writeSync(1, bytes)};
Object.assign(globalThis, {
  self: globalThis,
  WorkerGlobalScope: class {},
  XMLHttpRequest: Request,
  importScripts: () => {},
  location: {href: 'file://' + folder + '/engine_bundle.js'},
});
const node = process;
const EXPECTED = /warning: unsupported syscall|Loading trace|Unknown architecture|^\s*$/;
console.log = console.warn = (...words) => EXPECTED.test(words.join(' ')) || node.stderr.write(words.join(' ') + '\n');

Object.defineProperty(globalThis, 'process', {value: undefined, configurable: true});  // or it takes Node's own way
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));
Object.defineProperty(globalThis, 'process', {value: node, configurable: true});

setTimeout(() => {
  globalThis.onmessage({data: port});
  node.stdin.on('data', (bytes) => port.onmessage({data: new Uint8Array(bytes)}));
  node.stdin.on('end', () => node.exit(0));
}, 0);
