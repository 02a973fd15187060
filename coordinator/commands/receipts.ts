// The sealed word on who ran a command: it travels to the box with the request, and comes back with its reports.
import { createHmac, createSecretKey, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Command, type CommandActor, keptText } from '../../shared/api/commands.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { sealingKey } from './store.ts'

export type Receipt = {
  boxId: string
  commandId: string
  mode: Command['mode']
  source: Command['source']
  actor: CommandActor
  /** Milliseconds since the epoch, by the coordinator's clock. */
  requestedAt: number
  keepOutput: boolean
  /** See commandHash. */
  hash: string
}

export type Receipts = {
  seal(receipt: Receipt): Promise<string>
  /** Must have resolved before `open`. */
  load(): Promise<void>
  /** null for what this service has not sealed. */
  open(text: string): Receipt | null
}

const KEY_NAME = 'command-receipts'
const MAC_CHARS = 43
const VERSION = 1

/** Of what a record says the command was, so that a box cannot have it say something else. */
export function commandHash(text: string, cwd: string): string {
  const { command, commandTruncated } = keptText(text)
  return hashKept(command, commandTruncated, cwd)
}

export const hashKept = (command: string, commandTruncated: boolean, cwd: string): string =>
  hash('sha256', JSON.stringify([command, commandTruncated, cwd]), 'base64url')

/** @param db holds the key, which the first coordinator of all makes */
export function createReceipts(db: Db, clock: Clock): Receipts {
  // As an object: from bytes each seal would make one of its own, which takes longer than the seal.
  let key: KeyObject | undefined
  let loading: Promise<void> | undefined

  function load(): Promise<void> {
    if (key !== undefined) return Promise.resolve()
    loading ??= sealingKey(db, KEY_NAME, randomBytes(32).toString('hex'), clock.now())
      .then((hex) => {
        key = createSecretKey(hex, 'hex')
      })
      .finally(() => {
        loading = undefined
      })
    return loading
  }

  function mac(payload: string): string {
    if (key === undefined) throw new Error('The key of the receipts was not loaded.')
    return createHmac('sha256', key).update(payload).digest('base64url')
  }

  return {
    load,
    async seal(receipt) {
      if (key === undefined) await load()
      const payload = Buffer.from(JSON.stringify({ version: VERSION, ...receipt })).toString('base64url')
      return `${payload}.${mac(payload)}`
    },
    open(text) {
      const dot = text.length - MAC_CHARS - 1
      if (dot < 1 || text[dot] !== '.') return null
      const payload = text.slice(0, dot)
      const [given, ours] = [Buffer.from(text.slice(dot + 1)), Buffer.from(mac(payload))]
      if (given.length !== ours.length || !timingSafeEqual(given, ours)) return null
      // Sealed by us, so it is in the form that we gave it then.
      const { version, ...receipt } = JSON.parse(Buffer.from(payload, 'base64url').toString())
      return version === VERSION ? (receipt as Receipt) : null
    },
  }
}
