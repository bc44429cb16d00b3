// NODE_OPTIONS loads this into each process: SIGUSR2 collects all garbage, so that only reachable memory remains.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
process.on('SIGUSR2', () => collect());
