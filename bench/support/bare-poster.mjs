import { once } from 'node:events';
import { Agent } from 'undici';

/** The physical limit of the deliveries: an undici loop that posts the same bytes, unsigned, from no database. */
process.on('disconnect', () => process.exit(0));
const [{ caPem, origin, paths, posts, connections, headers, body }] = await once(process, 'message');
const agent = new Agent({ connect: { ca: caPem }, connections, pipelining: 1 });
let left = posts;
const failed = [];

async function post() {
  while (left > 0) {
    left -= 1;
    const path = paths[left % paths.length];
    const response = await agent.request({ origin, path, method: 'POST', headers, body });
    await response.body.dump();
    if (response.statusCode !== 200) failed.push(response.statusCode);
  }
}
const startedMs = performance.now();
await Promise.all(Array.from({ length: connections }, post));
process.send({ elapsedMs: performance.now() - startedMs, failed: failed.length });
await agent.destroy();
