import { createServer } from 'node:http';

/**
 * The physical limit of the reads: a bare node:http server in a process of its own that sends given bytes by path.
 * Its parent sends them, receives its port, and ends it by closing the channel.
 */
const bodies = new Map();
const server = createServer((request, response) => {
  const answer = bodies.get(request.url);
  if (answer === undefined) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, answer.headers).end(answer.body);
});
process.on('message', (answers) => {
  for (const { path, headers, body } of answers) bodies.set(path, { headers, body: Buffer.from(body) });
  if (server.listening) process.send({ port: server.address().port });
  else server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
});
process.on('disconnect', () => process.exit(0));
