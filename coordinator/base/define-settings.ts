// Settings of the coordinator: a module declares its environment variables beside itself, and gets their values in `config`.
import type { z } from 'zod'
import { validationMessage } from '../../shared/validation-message.ts'

export type Setting = {
  /** The environment variable. */
  variable: string
  /** null: there is none, and the value is null without the variable. */
  default: string | null
  /** The default in docs/configuration.md, where it is not `default`. */
  shownDefault?: string
  /** In docs/configuration.md. */
  description: string
  schema: z.ZodType
  /** Error messages do not contain the value. */
  isSecret?: boolean
}

export type Settings = Readonly<Record<string, Setting>>

type Values<S extends Settings> = {
  readonly [K in keyof S]: z.output<S[K]['schema']> | (S[K]['default'] extends null ? null : never)
}

export type SettingsGroup<S extends Settings = Settings> = {
  settings: S
  /** Returns the problem with the values together; null: none. */
  check(values: Values<S>): string | null
}

export type SettingsOf<G> = G extends SettingsGroup<infer S> ? Values<S> : never

type Environment = Readonly<Record<string, string | undefined>>

/** The message has one line for each problem. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** @param check returns the problem with values that are valid each for itself; null: none */
export const defineSettings = <const S extends Settings>(
  settings: S,
  check: (values: Values<S>) => string | null = () => null,
): SettingsGroup<S> => ({ settings, check })

/** Reads the variables of a group, and adds problems as sentences. An empty variable counts as not set. */
export function readSettings(
  group: SettingsGroup,
  env: Environment,
  problems: string[],
): Record<string, unknown> {
  const before = problems.length
  const values: Record<string, unknown> = {}
  for (const [field, { variable, default: fallback, schema, isSecret = false }] of Object.entries(
    group.settings,
  )) {
    values[field] = null
    const text = env[variable] || fallback
    if (text === null) continue
    const result = schema.safeParse(text)
    if (result.success) values[field] = result.data
    else {
      const value = isSecret ? '' : `; it is ${JSON.stringify(text)}`
      problems.push(`${validationMessage(result.error.issues, variable)}${value}.`)
    }
  }
  const problem = problems.length === before ? group.check(values) : null
  if (problem !== null) problems.push(problem)
  return values
}
