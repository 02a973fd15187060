// The variables that a box has by itself, as a request brings them to its agent.
import type { BoxRow } from '../db/schema.ts'

export function boxEnv(box: BoxRow): Record<string, string> {
  const list: { name: string; value: string }[] = JSON.parse(box.env_vars)
  return Object.fromEntries(list.map(({ name, value }) => [name, value]))
}
