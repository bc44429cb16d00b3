import { createServer } from 'node:http';

/**
 * The physical limit of the streams: a bare node:http server in a process of its own that sends each given text to all its clients.
 * Its parent sends the texts, receives its port, and ends it by closing the channel.
 */
const clients = new Set();
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('\n');
  clients.add(response);
});
process.on('message', (text) => {
  const bytes = Buffer.from(text);
  for (const client of clients) client.write(bytes);
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
