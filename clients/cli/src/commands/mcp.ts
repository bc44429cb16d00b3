import { createInterface } from 'node:readline';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { McpProxy } from '../mcp/proxy.ts';

export const mcp: CliCommand = {
  summary: 'Serves the Model Context Protocol on standard input and output, for programs that start their servers.',
  forms: ['mcp'],
  options: {},
  words: [0, 0],
  notes: `A program starts it with the variables ODDSWIRE_URL and ODDSWIRE_KEY. Each message goes to /mcp of the service, with the scopes and
limits of the key. It ends with its input.`,
  async run(call) {
    const { io } = call;
    const proxy = new McpProxy(call.settings(), io.signal);
    const lines = createInterface({ input: io.stdin, signal: io.signal });
    // Answers may come in any order, but the version is known only after the answer to the first message.
    const open = new Set<Promise<void>>();
    let isFirst = true;
    for await (const line of lines) {
      if (line.trim() === '') continue;
      const answering = proxy.answer(line).then(async (answer) => {
        if (answer !== undefined) await call.print(`${answer}\n`);
      });
      if (isFirst) await answering;
      isFirst = false;
      open.add(answering);
      answering.then(
        () => open.delete(answering),
        () => undefined,
      );
    }
    await Promise.all(open);
    if (io.signal.aborted) await call.note('stopped serving; the service keeps no session');
    return EXIT.done;
  },
};
