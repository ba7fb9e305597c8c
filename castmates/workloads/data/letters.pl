# Reads a box of letters: scores each as spam or not, turns it into HTML, indexes its words, and prints a checksum.
use strict;
use warnings;

my @rules = (
    [ qr/\bFREE\b!+/,               3.0 ], [ qr/\b\d+% guaranteed\b/i, 2.5 ], [ qr/\bclick\s+here\b/i, 2.0 ],
    [ qr{https?://\S+?/\d{3,}}i,    1.5 ], [ qr/\burgent\b.*\breply\b/i, 1.8 ], [ qr/\b(?:cheap|winner)\b/i, 1.0 ],
    [ qr/^(?:\w+\s+){12,}\w+[.;]$/m, -0.2 ], [ qr/(\b\w{3,}\b).*\b\1\b.*\b\1\b/, 0.1 ],
);
my ( %index, %senders, $spam, $html );
$html = '';
{
    local $/ = "\n\f\n";
    open my $box, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
    while ( my $letter = <$box> ) {
        my ( $head, $body ) = split /\n\n/, $letter, 2;
        my %field = map { /^(\w+):\s*(.*)$/ ? ( lc $1 => $2 ) : () } split /\n/, $head;
        my $score = 0;
        $body =~ $_->[0] and $score += $_->[1] for @rules;
        $spam++ if $score >= 1.5;
        my ( $user, $host ) = $field{from} =~ /^([^@]+)@(.+)$/;
        push @{ $senders{$host}{$user} }, $field{date};
        $index{ lc $1 }{ $field{subject} }++ while $body =~ /\b([a-z]{4,})\b/gi;
        ( my $page = $body ) =~ s/([<>&])/sprintf '&#%d;', ord $1/ge;
        $page =~ s{^== (.+?) ==$}{<h2>$1</h2>}mg;
        $page =~ s{(https?://\S+)}{<a href="$1">$1</a>}g;
        $page =~ s{\n\s*\n}{\n<p>\n}g;
        $html .= sprintf "<article id=\"%s\">%s</article>\n", join( '-', map { sprintf '%02x', ord } split //, $user ), $page;
    }
}
my $sum = 0;
for my $word ( sort { keys %{ $index{$b} } <=> keys %{ $index{$a} } || $a cmp $b } keys %index ) {
    my $letters = join ',', sort keys %{ $index{$word} };
    $sum = ( $sum * 31 + unpack '%32C*', $word . $letters ) & 0x7fffffff;
}
for my $host ( sort keys %senders ) {
    $sum = ( $sum * 17 + unpack '%32C*', join '|', map { "$_=" . join ';', sort @{ $senders{$host}{$_} } } sort keys %{ $senders{$host} } ) & 0x7fffffff;
}
printf "%d words, %d spam, %d bytes of HTML, checksum %08x\n", scalar keys %index, $spam // 0, length $html, ( $sum + unpack '%32C*', $html ) & 0x7fffffff;
