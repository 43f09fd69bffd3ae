-- Whoever was to look has gone. ARGV: horizon.
begin()
ring_for(micros() + tonumber(ARGV[1]))
return 1
