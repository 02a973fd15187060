// Readers of JSON whose shape is not known: the output lines and credential files of coding-agent CLIs. None throws.
import stripJsonComments from 'strip-json-comments'
import type { JsonObject } from './types.ts'

export const MAX_SESSION_ID_CHARS = 256
/** The longest message of an outcome. Checkpoints of a run's log store it. */
export const MAX_OUTCOME_MESSAGE_CHARS = 4096

/** Session ids become arguments of the CLI. A leading hyphen would be an option. */
const SESSION_ID_PATTERN = /^[A-Za-z0-9_][\w.-]*$/

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns null when the text is not a JSON object. */
export function parseJsonObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** Allows comments and trailing commas. Returns null when the text is not a JSON object. */
export const parseCommentedJsonObject = (text: string): JsonObject | null =>
  parseJsonObject(stripJsonComments(text, { trailingCommas: true }))

/** Returns the value at a path of keys; undefined when the path does not exist. */
export function valueAt(value: unknown, ...path: string[]): unknown {
  let current = value
  for (const key of path) {
    if (!isJsonObject(current) || !Object.hasOwn(current, key)) return undefined
    current = current[key]
  }
  return current
}

/** Returns null when the value is not a string. */
export function stringAt(value: unknown, ...path: string[]): string | null {
  const found = valueAt(value, ...path)
  return typeof found === 'string' ? found : null
}

/** Returns null when the value is not a string, or is only whitespace. */
export function nonBlankStringAt(value: unknown, ...path: string[]): string | null {
  const found = stringAt(value, ...path)
  return found === null || found.trim() === '' ? null : found
}

/** Returns null when the value is not a finite number. */
export function numberAt(value: unknown, ...path: string[]): number | null {
  const found = valueAt(value, ...path)
  return typeof found === 'number' && Number.isFinite(found) ? found : null
}

export function isTrueAt(value: unknown, ...path: string[]): boolean {
  return valueAt(value, ...path) === true
}

/** Returns an empty object when the value is not an object. */
export function objectAt(value: unknown, ...path: string[]): JsonObject {
  const found = valueAt(value, ...path)
  return isJsonObject(found) ? found : {}
}

/** Returns an empty array when the value is not an array. */
export function arrayAt(value: unknown, ...path: string[]): readonly unknown[] {
  const found = valueAt(value, ...path)
  return Array.isArray(found) ? found : []
}

/** Returns null when the value is not an id that can be passed to the CLI again. */
export function sessionIdAt(value: unknown, ...path: string[]): string | null {
  const found = stringAt(value, ...path)
  return found !== null && found.length <= MAX_SESSION_ID_CHARS && SESSION_ID_PATTERN.test(found)
    ? found
    : null
}

/** Truncates to `maxChars` UTF-16 code units. A truncated text ends with … and is never split inside a surrogate pair. */
export function boundedText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  const end = maxChars - 1
  const last = text.charCodeAt(end - 1)
  const splitsPair = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, splitsPair ? end - 1 : end)}…`
}
