// The sealed word on who ran a command: it travels to the box with the request, and comes back with its reports.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { COMMAND_ID, type Command, type CommandActor, keptText } from '../../shared/api/commands.ts'
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

/** Of what a record says the command was, so that a box cannot have it say something else. */
export function commandHash(text: string, cwd: string): string {
  const { command, commandTruncated } = keptText(text)
  return hashKept(command, commandTruncated, cwd)
}

export const hashKept = (command: string, commandTruncated: boolean, cwd: string): string =>
  createHash('sha256')
    .update(JSON.stringify([command, commandTruncated, cwd]))
    .digest('base64url')

/** @param db holds the key, which the first coordinator of all makes */
export function createReceipts(db: Db, clock: Clock): Receipts {
  let key: Buffer | undefined
  let loading: Promise<void> | undefined

  function load(): Promise<void> {
    if (key !== undefined) return Promise.resolve()
    loading ??= sealingKey(db, KEY_NAME, randomBytes(32).toString('hex'), clock.now())
      .then((hex) => {
        key = Buffer.from(hex, 'hex')
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
    async seal({ boxId, commandId, mode, source, actor, requestedAt, keepOutput, hash }) {
      if (key === undefined) await load()
      const { kind, userId, tokenId } = actor
      const fields = [1, boxId, commandId, mode, source, kind, userId, tokenId, requestedAt, keepOutput, hash]
      const payload = Buffer.from(JSON.stringify(fields)).toString('base64url')
      return `${payload}.${mac(payload)}`
    },
    open(text) {
      const dot = text.length - MAC_CHARS - 1
      if (dot < 1 || text[dot] !== '.') return null
      const payload = text.slice(0, dot)
      const [given, ours] = [Buffer.from(text.slice(dot + 1)), Buffer.from(mac(payload))]
      if (given.length !== ours.length || !timingSafeEqual(given, ours)) return null
      const fields = JSON.parse(Buffer.from(payload, 'base64url').toString())
      // Sealed by us, so it is in the form that we gave it then.
      const [version, boxId, commandId, mode, source, kind, userId, tokenId, requestedAt, keepOutput, hash] =
        fields
      if (version !== 1 || !COMMAND_ID.test(commandId)) return null
      return {
        boxId,
        commandId,
        mode,
        source,
        actor: { kind, userId, tokenId },
        requestedAt,
        keepOutput,
        hash,
      }
    },
  }
}
