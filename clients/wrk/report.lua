-- Requests the paths of a file, if there is one. Prints wrk's results for h123 after the test, and the CPU time
-- of printing them.

-- wrk needs one step per µs to find an entry, so more steps than this would take seconds.
local most_steps = 4e9

-- The arguments after `--`: a file with a path on each line, the order, and the seed of a random one.
function init(args)
   if not args[1] then
      return
   end
   local requests = {}
   for path in io.lines(args[1]) do
      requests[#requests + 1] = wrk.format(nil, path)
   end
   local is_random, number = args[2] == "random", 0
   math.randomseed(tonumber(args[3]) % 2147483647)
   request = function()
      number = is_random and math.random(#requests) or number % #requests + 1
      return requests[number]
   end
end

function done(summary, latency, requests)
   local began = os.clock()
   local errors = summary.errors
   io.write(string.format("h123 sums %d %d %d %d %d %d %d %d\n",
      summary.duration, summary.requests, summary.bytes,
      errors.connect, errors.read, errors.write, errors.status, errors.timeout))
   local entries = #latency
   if entries > 0 and entries * (latency.max - latency.min) <= most_steps then
      for entry = 1, entries do
         local us, count = latency(entry)
         io.write(string.format("h123 latency %d %d\n", us, count))
      end
   end
   io.write(string.format("h123 report_cpu %d\n", (os.clock() - began) * 1e6))
end
