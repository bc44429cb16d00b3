import { once } from 'node:events';
import { createServer } from 'node:tls';

/**
 * A receiver that never stops sending, in a process of its own so that the sender's memory can be measured separately. Its parent
 * sends the certificate and receives the port; then each path names a flood. It ends with the channel.
 */
const FLOODS = {
  '/body': ['HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(65_536)],
  '/failing-body': ['HTTP/1.1 500 Oops\r\n\r\n', 'x'.repeat(65_536)],
  '/chunked-body': ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', `10000\r\n${'x'.repeat(65_536)}\r\n`],
  '/tiny-chunks': ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', '1\r\nx\r\n'.repeat(10_000)],
  '/chunk-extension': ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;', 'x'.repeat(65_536)],
  '/trailers': ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n', 'x-trailer: 1\r\n'.repeat(5_000)],
  '/gzip-body': ['HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n', '\u001f\u008b'.repeat(32_768)],
  '/headers': ['HTTP/1.1 200 OK\r\n', 'x-flood: 1\r\n'.repeat(5_000)],
  '/one-header': ['HTTP/1.1 200 OK\r\nx-flood: ', 'x'.repeat(65_536)],
  '/header-name': ['HTTP/1.1 200 OK\r\n', 'x'.repeat(65_536)],
  '/reason': ['HTTP/1.1 200 ', 'x'.repeat(65_536)],
  '/early-hints': ['', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(1_500)],
  '/continues': ['', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2_000)],
  '/blank-lines': ['', '\r\n'.repeat(32_768)],
  '/zeros': ['', '\0'.repeat(65_536)],
};

let open = 0;
process.on('disconnect', () => process.exit(0));
const [certificate] = await once(process, 'message');

const server = createServer(certificate, (socket) => {
  open += 1;
  socket.on('close', () => {
    open -= 1;
    process.send({ open });
  });
  // The sender disconnects in the middle of every answer.
  socket.on('error', () => socket.destroy());
  socket.once('data', (chunk) => {
    const path = chunk.toString('latin1').split(' ')[1];
    const [head, block] = FLOODS[path];
    const bytes = Buffer.from(block, 'latin1');
    const pump = () => {
      if (socket.destroyed) return;
      if (socket.write(bytes)) setImmediate(pump);
      else socket.once('drain', pump);
    };
    socket.write(head);
    pump();
  });
});
server.on('tlsClientError', (_error, socket) => socket.destroy());
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port, paths: Object.keys(FLOODS) }));
