import { VARIABLES } from './variables.ts';

/** The processes that need the secret of a variable. */
const READERS = new Map<string, readonly string[] | undefined>(
  Object.entries(VARIABLES).map(([name, { readers }]) => [name, readers]),
);

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the process of this name may have the variable. */
export function mayRead(processName: string, variable: string): boolean {
  return READERS.get(variable)?.includes(processName) ?? true;
}

/** The environment without the secrets that the process does not need. */
export function environmentOf(processName: string, environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([variable]) => mayRead(processName, variable)));
}
