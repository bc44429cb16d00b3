import type { CliCommand, Commands, Option } from './command.ts';
import { COMMON } from './read-arguments.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** The completion of commands, verbs, options and their choices for a shell. */
export function completionScript(shell: Shell, commands: Commands): string {
  return { bash, zsh, fish }[shell](commands);
}

function optionsOf(command: CliCommand): [string, Option][] {
  return Object.entries({ ...command.options, ...COMMON });
}

function bash(commands: Commands): string {
  const words = Object.entries(commands).map(([name, command]) => {
    const verbs = command.verbs ?? [];
    return `    ${name}) words='${[...verbs, ...optionsOf(command).map(([option]) => `--${option}`)].join(' ')}' ;;`;
  });
  const choices = Object.entries(commands).flatMap(([name, command]) =>
    optionsOf(command).flatMap(([option, { choices: list }]) =>
      list === undefined ? [] : [`    '${name} --${option}') words='${list.join(' ')}' ;;`],
    ),
  );
  return `# bash completion of oddswire-cli
_oddswire_cli() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${Object.keys(commands).join(' ')}' -- "$current"))
    return
  fi
  case "$command" in
${words.join('\n')}
  esac
  case "$command $previous" in
${choices.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _oddswire_cli oddswire-cli
`;
}

/** A text inside single quotes of zsh and fish. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function zsh(commands: Commands): string {
  const list = Object.entries(commands).map(([name, { summary }]) => `    ${quoted(`${name}:${summary}`)}`);
  const cases = Object.entries(commands).map(([name, command]) => {
    const specs = optionsOf(command).map(([option, { value, choices, help }]) => {
      // Colons and brackets separate the parts of a specification.
      const text = help.replaceAll(/[[\]:]/g, ' ');
      const argument = value === undefined ? '' : `:${value}:${choices === undefined ? '' : `(${choices.join(' ')})`}`;
      return quoted(`--${option}[${text}]${argument}`);
    });
    const verbs = command.verbs === undefined ? [] : [quoted(`2:verb:(${command.verbs.join(' ')})`)];
    return `    ${name}) _arguments ${[...verbs, ...specs].join(' ')} ;;`;
  });
  return `#compdef oddswire-cli
_oddswire_cli() {
  local -a commands
  commands=(
${list.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2]" in
${cases.join('\n')}
  esac
}
compdef _oddswire_cli oddswire-cli
`;
}

function fish(commands: Commands): string {
  const lines = Object.entries(commands).flatMap(([name, command]) => {
    const on = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c oddswire-cli -f -n __fish_use_subcommand -a ${name} -d ${quoted(command.summary)}`,
      ...(command.verbs === undefined
        ? []
        : [`complete -c oddswire-cli -f ${on} -a ${quoted(command.verbs.join(' '))}`]),
      ...optionsOf(command).map(([option, { value, choices, help }]) => {
        const argument =
          value === undefined ? '' : choices === undefined ? ' -r' : ` -x -a ${quoted(choices.join(' '))}`;
        return `complete -c oddswire-cli ${on} -l ${option}${argument} -d ${quoted(help)}`;
      }),
    ];
  });
  return `# fish completion of oddswire-cli\n${lines.join('\n')}\n`;
}
