// A client that follows a detached command and comes back by Last-Event-ID, and that forgives not one byte.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export type Exit = { status: string; exitCode: number | null; signal: string | null }

export type Followed = {
  exit: Exit
  /** SHA-256 of each stream, hex, and how many bytes it had. */
  stdout: { sha256: string; bytes: number }
  stderr: { sha256: string; bytes: number }
  /** How often the stream was opened, and how many events came in all. */
  opened: number
  events: number
}

export type ResumingReader = {
  done: Promise<Followed>
  /** Cuts the connection that is open now. */
  cut(): void
  /** Bytes of both streams so far. */
  received(): number
}

/** Opens the stream; rejects while the coordinator is not there. */
type Open = (headers: Record<string, string>) => Promise<IncomingMessage>

/** Answers that are an error in themselves, however often one tries. */
const FATAL = new Set([400, 401, 404, 405])

/** @param giveUpMs how long nothing may arrive. `done` rejects then, and at the first event that does not follow on. */
export function followToTheEnd(open: Open, giveUpMs: number): ResumingReader {
  const at = { stdout: 0, stderr: 0 }
  const hashes = { stdout: createHash('sha256'), stderr: createHash('sha256') }
  let current: IncomingMessage | null = null
  let exit: Exit | null = null
  let lastId: string | null = null
  let opened = 0
  let events = 0
  let lastNews = performance.now()

  function take(block: string): void {
    const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1]
    const name = field('event')
    const text = field('data')
    if (name === undefined || text === undefined) return
    if (exit !== null) throw new Error(`an event after exit: ${name}`)
    events += 1
    const data = JSON.parse(text)
    if (name === 'stdout' || name === 'stderr') {
      const bytes = Buffer.from(data.data, 'base64')
      if (data.offset !== at[name])
        throw new Error(
          `${name} goes on at ${data.offset}, not at ${at[name]}: ${data.offset > at[name] ? 'lost' : 'repeated'}`,
        )
      if (data.nextOffset !== data.offset + bytes.length)
        throw new Error(`${name}: ${text.slice(0, 200)} does not add up`)
      hashes[name].update(bytes)
      at[name] = data.nextOffset
    } else if (
      'stdoutOffset' in data &&
      (data.stdoutOffset !== at.stdout || data.stderrOffset !== at.stderr)
    ) {
      throw new Error(
        `${name} is at ${data.stdoutOffset}:${data.stderrOffset}, not at ${at.stdout}:${at.stderr}`,
      )
    }
    const id = field('id')
    if (id !== undefined) {
      if (id !== `${at.stdout}:${at.stderr}`)
        throw new Error(`${name} has the id ${id} at ${at.stdout}:${at.stderr}`)
      lastId = id
    }
    if (name === 'exit') exit = data
  }

  async function once(): Promise<void> {
    const response = await open(lastId === null ? {} : { 'last-event-id': lastId })
    if (FATAL.has(response.statusCode ?? 0))
      throw new Fatal(`the stream answered ${response.statusCode}: ${await textOf(response)}`)
    if (response.statusCode !== 200) return void response.resume()
    current = response
    opened += 1
    let rest = ''
    for await (const chunk of response) {
      lastNews = performance.now()
      const blocks = (rest + chunk.toString('latin1')).split('\n\n')
      // What a cut leaves of an event is none.
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        try {
          take(block)
        } catch (cause) {
          throw new Fatal(String(cause), { cause })
        }
      }
    }
  }

  async function follow(): Promise<Followed> {
    while (exit === null) {
      try {
        await once()
      } catch (error) {
        if (error instanceof Fatal) throw error
      } finally {
        current = null
      }
      if (performance.now() - lastNews > giveUpMs)
        throw new Error(`nothing came for ${giveUpMs} ms at ${lastId}`)
      if (exit === null) await delay(50)
    }
    const result = (name: 'stdout' | 'stderr') => ({ sha256: hashes[name].digest('hex'), bytes: at[name] })
    return { exit, stdout: result('stdout'), stderr: result('stderr'), opened, events }
  }

  return { done: follow(), cut: () => current?.destroy(), received: () => at.stdout + at.stderr }
}

class Fatal extends Error {}

async function textOf(response: IncomingMessage): Promise<string> {
  return Buffer.concat(await response.toArray()).toString('utf8')
}
