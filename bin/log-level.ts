import { VARIABLES } from '../src/config/variables.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** LOG_LEVEL before the configuration is checked. A working logger reports an unknown level later. */
export function logLevelOf(environment: Readonly<Record<string, string | undefined>>): string {
  const level = environment['LOG_LEVEL'] ?? '';
  return LEVELS.includes(level) ? level : (VARIABLES.LOG_LEVEL.default ?? 'info');
}
