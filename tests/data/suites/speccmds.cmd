# made by runcpu
-S 1
-E LD_LIBRARY_PATH /usr/lib64:/lib64
-E NOTE two words
-E EMPTY
-r
-N C
-b 3 of $BIND
-C /spec/run_base_test_mine.0000
-C /spec/run_base_test_mine.0001

-o a.out -e a.err ../run_base_test_mine.0000/prog_base.mine in.$SPECCOPYNUM --flag -o x > a.out 2>> a.err
-k -o b.cmp specperl specdiff -m -l 10 ref b.out > b.cmp
__END__
-o never.out never
