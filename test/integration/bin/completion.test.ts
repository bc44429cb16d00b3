import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../../bin/commands.ts';
import { completionCommand } from '../../../bin/completion.ts';
import { hasProgram } from '../../support/processes/has-program.ts';
import { oddswire } from './run-command.ts';

const run = promisify(execFile);

/** Types lines with a tab in shells with a terminal, which append the completed lines to the file `$2`. */
const TYPE_IN_ZSH = String.raw`
zmodload zsh/zpty
type_in() {
  zpty shell zsh -f -i
  zpty -w shell "bindkey -e; unsetopt zle_bracketed_paste beep; autoload -Uz compinit; $1; print -r -- REA''DY"
  zpty -r -m shell output '*READY*'
  for line in 'oddswire ke' 'oddswire rejected --venue kal' 'oddswire keys create --exp'; do
    zpty -w -n shell "$line"$'\t\C-aprint -r -- "\C-e" >>'" $2"$'; print DO""NE\n'
    zpty -r -m shell output '*DONE*'
  done
  zpty -d shell
}
type_in "fpath=($1 \$fpath); compinit -u -D" $2
type_in "compinit -u -D; source $1/_oddswire" $2`;

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

  it.skipIf(!hasProgram('fish', 'completion in fish'))(
    'completes commands, verbs, options and choices in fish',
    async () => {
      const { stdout: script } = await oddswire(['completion', 'fish'], {});
      const offersOf = async (line: string) => {
        const { stdout } = await run('fish', ['--no-config', '-c', `${script}complete -C ${JSON.stringify(line)}`]);
        return stdout.split('\n').flatMap((offer) => offer.split('\t')[0] || []);
      };
      expect(await offersOf('oddswire audit')).toEqual(['audit', 'audit-trail']);
      expect(await offersOf('oddswire keys l')).toEqual(['link', 'list']);
      expect(await offersOf('oddswire keys create --exp')).toEqual(['--expires']);
      expect(await offersOf('oddswire operators add alice --role ')).toEqual(['operator', 'viewer']);
    },
  );

  it.skipIf(!hasProgram('zsh', 'completion in zsh'))(
    'completes a line in zsh, as a file of fpath and as a sourced text',
    async () => {
      const { stdout: script } = await oddswire(['completion', 'zsh'], {});
      const folder = await mkdtemp(join(tmpdir(), 'oddswire-zsh-'));
      try {
        await writeFile(join(folder, '_oddswire'), script);
        await run('zsh', ['-f', '-c', TYPE_IN_ZSH, 'zsh', folder, join(folder, 'lines')]);
        const completed = ['oddswire keys', 'oddswire rejected --venue kalshi', 'oddswire keys create --expires'];
        const lines = (await readFile(join(folder, 'lines'), 'utf8')).trim().split('\n');
        expect(lines.map((line) => line.trim())).toEqual([...completed, ...completed]);
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  );

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
