"""What the events of ftrace, trace-cmd and perf have to say, as each of them prints it."""

# perf and ftrace name every field; trace-cmd has shorter forms: python:3776 [120] R ==> rcu_preempt:15 [120].
SWITCH = (
    r"^(?:prev_comm=(?P<comm>.*) prev_pid=(?P<tid>\d+) prev_prio=-?\d+ prev_state=(?P<state>\S+) ==> "
    r"next_comm=(?P<next_comm>.*) next_pid=(?P<next>\d+) next_prio=-?\d+"
    r"|(?P<short_comm>.*):(?P<short_tid>\d+) \[-?\d+\] (?P<short_state>\S+) ==> "
    r"(?P<short_next_comm>.*):(?P<short_next>\d+) \[-?\d+\]).*$"
)
WAKE = (
    r"^(?:comm=(?P<comm>.*) pid=(?P<tid>\d+) prio=-?\d+(?: success=\d)? target_cpu=(?P<cpu>\d+)"
    r"|(?P<short_comm>.*):(?P<short_tid>\d+) \[-?\d+\].* CPU:(?P<short_cpu>\d+)).*$"
)
MIGRATE = r"^comm=(?P<comm>.*) pid=(?P<tid>\d+) prio=-?\d+ orig_cpu=(?P<origin>\d+) dest_cpu=(?P<cpu>\d+).*$"
RAW_ENTER, RAW_EXIT = r"^NR (?P<number>-?\d+)(?: \(.*)?$", r"^NR (?P<number>-?\d+) = (?P<value>-?\d+).*$"
NAMED_EXIT = r"^(?P<value>0x[0-9a-f]+|-?\d+).*$"
IRQ = r"^irq=(?P<line>\d+)(?: name=(?P<name>.*))?.*$"
SOFTIRQ = r"^vec=(?P<line>\d+) \[action=(?P<name>\w+)\].*$"
FAULT = r"^address=(?P<address>\S+).*$"
MARK = (
    r"^(?:tracing_mark_write: ?|\S+: )?"
    r"(?:(?P<kind>[BECI])(?:\|(?P<pid>\d+))?(?:\|(?P<name>[^|]*))?(?:\|(?P<value>-?[\d.]+))?|(?P<text>.*))$"
)
SHORT = "short_"
