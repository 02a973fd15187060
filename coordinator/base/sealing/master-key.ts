// A master key, as a line of the key file: `<id> <256 bits in base64>`.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { KEY_BYTES } from './aes-gcm.ts'

export type MasterKey = { id: string; key: KeyObject }

/** The first one is active. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]]

/** The form of an id. It has no dot, which separates the parts of a sealed value. */
export const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/

const RANDOM_ID_BYTES = 6

/** @returns line: the key as a line of the key file */
export function newMasterKey(): MasterKey & { line: string } {
  const bytes = randomBytes(KEY_BYTES)
  const id = `k${randomBytes(RANDOM_ID_BYTES).toString('hex')}`
  return { id, key: createSecretKey(bytes), line: `${id} ${bytes.toString('base64')}` }
}

/** Empty lines and lines that start with # are ignored. The messages contain ids and line numbers, and no part of a key. */
export function parseKeyFile(text: string): { keys: MasterKeys } | { problem: string } {
  const keys = new Map<string, MasterKey>()
  for (const [index, line] of text.split('\n').entries()) {
    const content = line.trim()
    if (content === '' || content.startsWith('#')) continue
    const [id = '', encoded = '', ...rest] = content.split(/\s+/)
    const bytes = Buffer.from(encoded, 'base64')
    const isKey = bytes.length === KEY_BYTES && bytes.toString('base64') === encoded
    if (!KEY_ID.test(id) || !isKey || rest.length > 0)
      return { problem: `line ${index + 1} is not a key: an id, a space, and ${KEY_BYTES} bytes in base64` }
    if (keys.has(id)) return { problem: `line ${index + 1} repeats the key id ${id}` }
    keys.set(id, { id, key: createSecretKey(bytes) })
    bytes.fill(0)
  }
  const [active, ...others] = keys.values()
  return active === undefined ? { problem: 'it has no key' } : { keys: [active, ...others] }
}
