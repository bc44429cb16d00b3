// NODE_OPTIONS loads this into each process: a connection to its socket collects all garbage and reads the bytes of reachable memory.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const server = createServer((socket) => {
  collect();
  socket.end(String(process.memoryUsage().heapUsed));
});
server.listen(join(process.env.SOAK_SOCKETS, String(process.pid)));
server.unref();
