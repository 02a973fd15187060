// A client that follows a detached command, reconnects with Last-Event-ID, and checks that every event continues exactly
// where the previous one stopped.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { LONG_DEADLINE_MS } from '../wait-until.ts'

export type Exit = { status: string; exitCode: number | null; signal: string | null }

export type StreamResult = {
  exit: Exit
  /** The SHA-256 of each output stream, in hex, and its length. */
  stdout: { sha256: string; bytes: number }
  stderr: { sha256: string; bytes: number }
  /** How often the event stream was opened. */
  connectionCount: number
  /** The number of events over all connections. */
  eventCount: number
}

export type ResumingReader = {
  /** Resolves after the exit event. Rejects on an inconsistent event or a timeout. */
  done: Promise<StreamResult>
  /** Closes the current connection. */
  disconnect(): void
}

/** Opens the event stream. Rejects while the coordinator is down. */
type Open = (headers: Record<string, string>) => Promise<IncomingMessage>

/** Statuses that a retry does not change. */
const PERMANENT_ERRORS = new Set([400, 401, 404, 405])

class PermanentError extends Error {}

/** The deadline is for the next bytes, over all attempts to reconnect. @param signal ends the reader with its reason */
export function createResumingReader(open: Open, signal?: AbortSignal): ResumingReader {
  const offsets = { stdout: 0, stderr: 0 }
  const hashes = { stdout: createHash('sha256'), stderr: createHash('sha256') }
  let current: IncomingMessage | null = null
  let exit: Exit | null = null
  let lastId: string | null = null
  let connectionCount = 0
  let eventCount = 0
  let lastReceived = performance.now()

  function processEvent(text: string): void {
    const getField = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(text)?.[1]
    const name = getField('event')
    const json = getField('data')
    if (name === undefined || json === undefined) return
    if (exit !== null) throw new Error(`an event after exit: ${name}`)
    eventCount += 1
    const data = JSON.parse(json)
    if (name === 'stdout' || name === 'stderr') {
      const bytes = Buffer.from(data.data, 'base64')
      if (data.offset !== offsets[name])
        throw new Error(
          `${name} continues at ${data.offset}, not at ${offsets[name]}: bytes are ${data.offset > offsets[name] ? 'missing' : 'repeated'}`,
        )
      if (data.nextOffset !== data.offset + bytes.length)
        throw new Error(`the offsets of ${name} do not match its data: ${json.slice(0, 200)}`)
      hashes[name].update(bytes)
      offsets[name] = data.nextOffset
    } else if (
      'stdoutOffset' in data &&
      (data.stdoutOffset !== offsets.stdout || data.stderrOffset !== offsets.stderr)
    ) {
      throw new Error(
        `${name} is at ${data.stdoutOffset}:${data.stderrOffset}, not at ${offsets.stdout}:${offsets.stderr}`,
      )
    }
    const id = getField('id')
    if (id !== undefined) {
      if (id !== `${offsets.stdout}:${offsets.stderr}`)
        throw new Error(`${name} has the id ${id} at ${offsets.stdout}:${offsets.stderr}`)
      lastId = id
    }
    if (name === 'exit') exit = data
  }

  async function readConnection(): Promise<void> {
    const response = await open(lastId === null ? {} : { 'last-event-id': lastId })
    if (PERMANENT_ERRORS.has(response.statusCode ?? 0))
      throw new PermanentError(`the stream responded ${response.statusCode}: ${await readText(response)}`)
    if (response.statusCode !== 200) return void response.resume()
    current = response
    connectionCount += 1
    let remainder = ''
    for await (const chunk of response) {
      lastReceived = performance.now()
      const texts = (remainder + chunk.toString('latin1')).split('\n\n')
      // An event that a disconnect truncates is dropped.
      remainder = texts.pop() ?? ''
      for (const text of texts) {
        try {
          processEvent(text)
        } catch (cause) {
          throw new PermanentError(String(cause), { cause })
        }
      }
    }
  }

  async function readUntilExit(): Promise<StreamResult> {
    while (exit === null) {
      signal?.throwIfAborted()
      try {
        await readConnection()
      } catch (error) {
        if (error instanceof PermanentError) throw error
      } finally {
        current = null
      }
      if (performance.now() - lastReceived > LONG_DEADLINE_MS)
        throw new Error(`nothing received for ${LONG_DEADLINE_MS} ms after ${lastId}`)
      if (exit === null) await delay(50)
    }
    const result = (name: 'stdout' | 'stderr') => ({
      sha256: hashes[name].digest('hex'),
      bytes: offsets[name],
    })
    return { exit, stdout: result('stdout'), stderr: result('stderr'), connectionCount, eventCount }
  }

  return { done: readUntilExit(), disconnect: () => current?.destroy() }
}

async function readText(response: IncomingMessage): Promise<string> {
  return Buffer.concat(await response.toArray()).toString('utf8')
}
