"""Writes `shop.xml`, a generated catalogue, and `shop.xsl`, which turns it into a page: grouped, sorted, counted."""

from castmates.workloads.data.common import Numbers, arguments
from castmates.workloads.data.text import words

STYLE = """\
<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="html" indent="yes"/>
<xsl:key name="by-maker" match="item" use="maker"/>
<xsl:template match="/shop"><html><body>
<p><xsl:value-of select="count(item)"/> items, <xsl:value-of select="sum(item/price)"/></p>
<xsl:for-each select="item[generate-id() = generate-id(key('by-maker', maker)[1])]">
<xsl:sort select="maker"/><h2><xsl:value-of select="maker"/></h2>
<table><xsl:apply-templates select="key('by-maker', maker)">
<xsl:sort select="price" data-type="number"/></xsl:apply-templates></table>
</xsl:for-each></body></html></xsl:template>
<xsl:template match="item"><tr id="{@id}">
<td><xsl:value-of select="translate(name, 'abcdefghij', 'ABCDEFGHIJ')"/></td>
<td><xsl:value-of select="format-number(price, '0.00')"/></td>
<td><xsl:value-of select="substring-before(concat(note, '.'), '.')"/></td>
<td><xsl:choose><xsl:when test="contains(note, 'er')">x</xsl:when><xsl:otherwise>-</xsl:otherwise></xsl:choose></td>
<td><xsl:value-of select="count(preceding-sibling::item[position() &lt; 40][maker = current()/maker])"/></td>
</tr></xsl:template>
</xsl:stylesheet>
"""


def main() -> None:
    """Write the files."""
    given = arguments("Writes an XML file of a fixed seed and its style sheet.", items=2000)
    numbers = Numbers(523)
    vocabulary = words(numbers, 2000)
    with (given.folder / "shop.xml").open("w", encoding="ascii", newline="\n") as file:
        file.write('<?xml version="1.0"?>\n<shop>\n')
        for number in range(given.items):
            note = " ".join(vocabulary[numbers.skewed(len(vocabulary))] for _ in range(12))
            file.write(
                f'<item id="i{number}"><name>{numbers.pick(vocabulary)}</name><maker>{vocabulary[numbers.skewed(80)]}'
                f"</maker><price>{numbers.between(1, 900):.2f}</price>"
                f"<note>{note}. {numbers.pick(vocabulary)}.</note></item>\n"
            )
        file.write("</shop>\n")
    (given.folder / "shop.xsl").write_text(STYLE, encoding="ascii")


if __name__ == "__main__":
    main()
