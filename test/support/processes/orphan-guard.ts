import { type ChildProcess, spawn } from 'node:child_process';

/** Receives the ids of running processes; when its parent ends, it kills the remaining ones. */
const SCRIPT = `left=' '
while read -r sign pid; do
  case "$sign" in
    +) left="$left$pid " ;;
    -) left=$(printf '%s' "$left" | sed "s/ $pid / /") ;;
  esac
done
[ "$left" = ' ' ] || kill -9 $left`;

let guard: ChildProcess | undefined;

function send(sign: '+' | '-', pid: number): void {
  if (guard === undefined) {
    // Its standard input ends with this process, at any kind of end.
    guard = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    guard.unref();
    (guard.stdin as unknown as { unref(): void }).unref();
  }
  guard.stdin?.write(`${sign} ${pid}\n`);
}

/** Ensures that a child does not outlive this process, also when a hook times out or this process is killed. */
export function endWithThisProcess(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  send('+', pid);
  child.once('exit', () => send('-', pid));
}
