// The variables of a box, as every command, prompt and terminal gets them.
import type { BoxRow } from '../db/schema.ts'
import { parseEnvVars } from './present.ts'

export type VariableColumns = Pick<BoxRow, 'env_vars' | 'environment_vars' | 'mount_vars'>

/**
 * The variables of the environment, then those of the box itself, then the placeholders of its secrets: a later one replaces
 * an earlier one of the same name.
 */
export function getBoxVariables({ env_vars, environment_vars, mount_vars }: VariableColumns) {
  const variables: Record<string, string> = {}
  for (const list of [environment_vars, env_vars, mount_vars])
    for (const { name, value } of parseEnvVars({ env_vars: list })) variables[name] = value
  return variables
}
