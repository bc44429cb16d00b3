import { VARIABLES } from './variables.ts';

/** The variables that hold a secret, each with the processes that need it. */
export const SECRET_READERS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(VARIABLES).flatMap(([name, { readers }]) => (readers ? [[name, readers]] : [])),
);

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the process of this name may have the variable. */
export function mayRead(processName: string, variable: string): boolean {
  return !Object.hasOwn(SECRET_READERS, variable) || (SECRET_READERS[variable]?.includes(processName) ?? false);
}

/** The environment without the secrets that the process does not need. */
export function environmentOf(processName: string, environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([variable]) => mayRead(processName, variable)));
}
