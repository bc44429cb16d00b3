import { rejectArguments } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import type { Command } from '../cli/program.ts';
import { table } from '../cli/table.ts';
import { configTable } from '../src/config/config.ts';

/** `oddswire config`: every environment variable, its default and its effect. */
export const command: Command = {
  usage: `usage: oddswire config

  Prints every environment variable with its default and its meaning.`,
  async run(argv) {
    rejectArguments(argv);
    const rows = configTable().map((row) => [row.name, row.default, row.meaning]);
    await print(table([['variable', 'default', 'meaning'], ...rows]));
    return 0;
  },
};
