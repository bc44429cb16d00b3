import type { Options } from './arguments.ts';

/** A command as a shell completes it. */
interface CompletedCommand {
  readonly summary: string;
  /** The words that may follow its name. */
  readonly verbs?: readonly string[];
  readonly options: Options;
}

export type CompletedCommands = Readonly<Record<string, CompletedCommand>>;

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Words that the program itself lists, one per line with a tab and a name behind it. */
interface ListedWords {
  /** Begins each of them. */
  readonly sign: string;
  /** The arguments of the program that prints them. */
  readonly call: string;
}

/** The completion of the commands, verbs, options and their choices of a program for a shell, and of the words that it lists. */
export function completionScript(
  shell: Shell,
  program: string,
  commands: CompletedCommands,
  listed?: ListedWords,
): string {
  return { bash, zsh, fish }[shell](program, commands, listed);
}

function listing(program: string, { call }: ListedWords): string {
  return `${program} ${call} 2>/dev/null`;
}

/** The name of the function of a shell. */
function functionOf(program: string): string {
  return `_${program.replaceAll('-', '_')}`;
}

function bash(program: string, commands: CompletedCommands, listed?: ListedWords): string {
  const words = Object.entries(commands).map(([name, command]) => {
    const verbs = command.verbs ?? [];
    return `    ${name}) words='${[...verbs, ...Object.entries(command.options).map(([option]) => `--${option}`)].join(' ')}' ;;`;
  });
  const choices = Object.entries(commands).flatMap(([name, command]) =>
    Object.entries(command.options).flatMap(([option, { choices: list }]) =>
      list === undefined ? [] : [`    '${name} --${option}') words='${list.join(' ')}' ;;`],
    ),
  );
  return `# bash completion of ${program}
${functionOf(program)}() {
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
${listed === undefined ? '' : `  if [[ "$current" == "${listed.sign}"* ]]; then words=$(${listing(program, listed)} | cut -f1); fi\n`}  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F ${functionOf(program)} ${program}
`;
}

/** A text inside single quotes of zsh and fish. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function zsh(program: string, commands: CompletedCommands, listed?: ListedWords): string {
  const wordsOf = `${functionOf(program)}_words`;
  const list = Object.entries(commands).map(([name, { summary }]) => `    ${quoted(`${name}:${summary}`)}`);
  const cases = Object.entries(commands).map(([name, command]) => {
    const specs = Object.entries(command.options).map(([option, { value, choices, help = '' }]) => {
      // Colons and brackets separate the parts of a specification.
      const text = help.replaceAll(/[[\]:]/g, ' ');
      const argument = value === undefined ? '' : `:${value}:${choices === undefined ? '' : `(${choices.join(' ')})`}`;
      return quoted(`--${option}[${text}]${argument}`);
    });
    const verbs = command.verbs === undefined ? [] : [quoted(`1:verb:(${command.verbs.join(' ')})`)];
    return `    ${name}) _arguments ${[...verbs, ...specs, `'*:word:${listed === undefined ? '_default' : wordsOf}'`].join(' ')} ;;`;
  });
  const words =
    listed === undefined
      ? ''
      : `${wordsOf}() {
  [[ "$PREFIX" == "${listed.sign}"* ]] || { _default; return }
  local -a ids
  ids=(\${(f)"$(${listing(program, listed)} | cut -f1)"})
  compadd -- $ids
}
`;
  return `#compdef ${program}
${words}${functionOf(program)}() {
  local -a commands
  commands=(
${list.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  # The specifications are those of the words behind the program.
  shift words
  (( CURRENT -= 1 ))
  case "$words[1]" in
${cases.join('\n')}
  esac
}
# A file of fpath is the body of the first call; a sourced text registers the function.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  ${functionOf(program)} "$@"
else
  compdef ${functionOf(program)} ${program}
fi
`;
}

function fish(program: string, commands: CompletedCommands, listed?: ListedWords): string {
  const lines = Object.entries(commands).flatMap(([name, command]) => {
    const on = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c ${program} -f -n __fish_use_subcommand -a ${name} -d ${quoted(command.summary)}`,
      ...(command.verbs === undefined ? [] : [`complete -c ${program} -f ${on} -a ${quoted(command.verbs.join(' '))}`]),
      ...Object.entries(command.options).map(([option, { value, choices, help = '' }]) => {
        const argument =
          value === undefined ? '' : choices === undefined ? ' -r' : ` -x -a ${quoted(choices.join(' '))}`;
        return `complete -c ${program} ${on} -l ${option}${argument} -d ${quoted(help)}`;
      }),
    ];
  });
  if (listed !== undefined) {
    const isOne = quoted(`string match -q -- '${listed.sign}*' (commandline -ct)`);
    lines.push(`complete -c ${program} -f -n ${isOne} -a ${quoted(`(${listing(program, listed)})`)}`);
  }
  return `# fish completion of ${program}\n${lines.join('\n')}\n`;
}
