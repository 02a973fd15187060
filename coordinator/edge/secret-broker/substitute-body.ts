// Replaces placeholders by values in the body of a request: in the values of a form, and in the strings of JSON.
import { encodeForm, encodeJsonString } from './encode-value.ts'
import { createLocationError, type Substitution } from './substitution.ts'
import type { OpenedSecret } from './value-cache.ts'

export type BodyFormat = 'form' | 'json'

/**
 * The placeholder of a secret that is not used in bodies is sent as it is, as a part of a text: coding agents send what they
 * have read. As the whole value of a field it is refused, because the server would need the value.
 * @throws BrokerError
 */
export function substituteBody(body: Buffer, format: BodyFormat, substitution: Substitution): Buffer {
  const text = body.toString('latin1')
  const replaced = format === 'json' ? substituteJson(text, substitution) : substituteForm(text, substitution)
  return replaced === text ? body : Buffer.from(replaced, 'latin1')
}

function substituteForm(text: string, substitution: Substitution): string {
  return text
    .split('&')
    .map((field) => {
      const end = field.indexOf('=') + 1
      if (end === 0) return field
      const value = field.slice(end)
      const refuse = (secret: OpenedSecret) => {
        if (value === secret.placeholder) throw createLocationError(secret, 'body')
      }
      return field.slice(0, end) + substitution.replace(value, 'body', encodeForm, refuse)
    })
    .join('&')
}

/** Outside of strings, JSON cannot have a placeholder. */
function substituteJson(text: string, substitution: Substitution): string {
  const refused = new Map<string, OpenedSecret>()
  const replaced = substitution.replace(text, 'body', encodeJsonString, (secret) =>
    refused.set(secret.placeholder, secret),
  )
  if (refused.size === 0) return replaced
  for (const value of listProperties(text)) {
    const secret = refused.get(value)
    if (secret !== undefined) throw createLocationError(secret, 'body')
  }
  return replaced
}

/** The strings that are properties of the object itself. */
function listProperties(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return []
    return Object.values(parsed).filter((value) => typeof value === 'string')
  } catch {
    // The server refuses the body, or reads it in another way.
    return []
  }
}
