"""What a stranger may put into a drawing, so that a browser runs or loads it; `ran` shows that it did."""

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
RAN = "document.body.dataset.ran=1"
ACTIVE = [  # a browser runs these by itself, where it is not kept from that
    f"<script>{RAN}</script>",
    f"<svg/onload={RAN}>",
    f'<svg xmlns="http://www.w3.org/2000/svg"onload="{RAN}"/>',
    f'<img/src="x"onerror={RAN}>',
    f'<image href="data:image/png;base64,x" onerror="{RAN}"/>',
    f'<foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="{RAN}"><img src="x" onerror="{RAN}"/></body>'
    "</foreignObject>",
    f'<animate attributeName="x" dur="1s" onbegin="{RAN}"/>',
    f'<set attributeName="x" to="1" begin="0s" onbegin="{RAN}"/>',
    f'<title><img src="x" onerror="{RAN}"/></title>',
]
LOADING = [  # these wait for a click or for another browser, leave the page, or ask another machine for something
    f'<g onload="{RAN}"/>',
    f'<style onload="{RAN}">g {{ }}</style><g/><g onload="{RAN}"/>',
    f'<iframe srcdoc="&lt;script&gt;parent.{RAN}&lt;/script&gt;"></iframe>',
    f"<embed src=data:text/html,<script>{RAN}</script>>",
    f"<object data=data:text/html,<script>{RAN}</script>></object>",
    f'<rect width="9"onclick={RAN}>',
    f"<a href=java&#115;cript:{RAN}><text>x</text></a>",
    f'<a xlink:href="javascript:{RAN}"><text>x</text></a>',
    "<image href=http://127.0.0.1:9/c.png>",
    '<image href="http://127.0.0.1:9/c.png"/>',
    '<use href="http://127.0.0.1:9/a.svg#b"/>',
    '<g style="fill: url(http://127.0.0.1:9/a.svg#b)"/>',
    "<meta http-equiv=refresh content=0;url=http://127.0.0.1:9/>",
    "<base href=http://127.0.0.1:9/>",
    "<link rel=stylesheet href=http://127.0.0.1:9/a.css>",
    "<form action=http://127.0.0.1:9/><input type=submit></form>",
]
STRANGE = [  # and what a drawing has no use for
    '<g class="stamp"/>',
    '<g style="position: fixed"/>',
    '<g xmlns="http://a.b/c"/>',
    "<unknown/>",
    "<g",
]
