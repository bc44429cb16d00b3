import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../../bin/commands.ts';
import { completionCommand } from '../../../bin/completion.ts';
import { oddswire } from './run-command.ts';

const run = promisify(execFile);

describe('oddswire completion', () => {
  let bash = '';
  beforeAll(async () => {
    bash = (await oddswire(['completion', 'bash'], {})).stdout;
  });

  /** The words that bash offers for a line whose last word is unfinished. */
  async function offers(line: string): Promise<string[]> {
    const words = line.split(' ');
    const { stdout } = await run('bash', [
      '-c',
      `${bash}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_oddswire; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ]);
    return stdout.split('\n').filter((word) => word !== '');
  }

  it('completes commands, verbs, options and choices in bash', async () => {
    expect(await offers('oddswire audit')).toEqual(['audit', 'audit-trail']);
    expect(await offers('oddswire keys l')).toEqual(['list', 'link']);
    expect(await offers('oddswire keys create --exp')).toEqual(['--expires']);
    expect(await offers('oddswire operators add alice --role ')).toEqual(['viewer', 'operator']);
    expect(await offers('oddswire completion f')).toEqual(['fish']);
  });

  it.each(['zsh', 'fish'])('names every command, verb and option for %s', async (shell) => {
    const { stdout: script, code } = await oddswire(['completion', shell], {});
    expect(code).toBe(0);
    for (const [name, { load }] of Object.entries(COMMANDS)) {
      expect(script).toContain(name);
      const { verbs = [], options = {} } = (await load()).command;
      expect(script).toContain(verbs.join(' '));
      for (const option of Object.keys(options))
        expect(script).toContain(shell === 'zsh' ? `--${option}` : `-l ${option}`);
    }
    // An odd number of quotes would end the script early.
    expect(script.replaceAll("'\\''", '').split("'").length % 2).toBe(1);
  });

  it('names the shells when the argument is another one', async () => {
    await expect(completionCommand(COMMANDS).run(['powershell'])).rejects.toThrow('name a shell: bash, zsh, fish');
    await expect(completionCommand(COMMANDS).run(['bash', 'x'])).rejects.toThrow('unknown argument x');
  });
});
