// The load of a chaos round with several coordinators: every kind of request, repeated until it succeeds where it may be repeated.
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import type { Box } from '../../../shared/api/boxes.ts'
import { connectFeed, type FeedClient } from '../feed-client.ts'
import { randomBuffer } from '../random.ts'
import type { ReplicaFleet } from '../replica-fleet.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import { createResumingReader } from './resuming-reader.ts'

/** One request. */
export type Attempt = {
  kind: string
  /** Whether it may be repeated, and is repeated until it succeeds. */
  repeats: boolean
  /** ok, the code of an error, or the code of an error of the connection. */
  result: string
  /** Of an error. */
  message: string
  startedAt: number
  endedAt: number
}

export type LoadBox = { id: string; hostname: string }

export type ReplicaLoadOptions = {
  fleet: Pick<ReplicaFleet, 'url' | 'send' | 'authHeaders'>
  /** They get the commands and files. */
  boxes: readonly LoadBox[]
  random: () => number
  seed: number
}

type Kind = { kind: string; repeats: boolean }
type Answer = { status: number; body: Buffer }

const DETACHED_LINES = 150
const MAX_FILE_BYTES = 1024 * 1024
const AUDIT_PAGE = 500
const ALLOWED_CODES = ['box_unreachable', 'control_plane_unavailable', 'idempotency_in_progress']

export type ReplicaLoad = ReturnType<typeof startReplicaLoad>

/** Rejects with an error that no death of a coordinator explains. */
export function startReplicaLoad(t: Test, { fleet, boxes, random, seed }: ReplicaLoadOptions) {
  const stopped = new AbortController()
  /** Aborts after a failure: nothing is repeated any more. */
  const abandoned = new AbortController()
  const attempts: Attempt[] = []
  const created = new Set<string>()
  /** The numbers of the commands that have succeeded, and of those that may not have run, by box. */
  const commands = { detached: new Map<string, number[]>(), plain: new Map<string, number[]>() }
  let number = 0

  async function attempt(
    { kind, repeats }: Kind,
    method: string,
    path: string,
    body?: Buffer | string,
    headers: Record<string, string | number> = {},
  ): Promise<Answer | undefined> {
    abandoned.signal.throwIfAborted()
    const startedAt = performance.now()
    const record = (result: string, message = '') =>
      attempts.push({ kind, repeats, result, message, startedAt, endedAt: performance.now() })
    let answer: Answer
    try {
      const response = await fleet.send(method, path, body, headers)
      answer = { status: response.statusCode ?? 0, body: Buffer.concat(await response.toArray()) }
    } catch (error) {
      record((error as NodeJS.ErrnoException).code ?? String(error))
      return undefined
    }
    if (answer.status < 300) {
      record('ok')
      return answer
    }
    const text = answer.body.toString()
    const code = readCode(text)
    record(code, text)
    // The agent's connection to the coordinator of its tunnel may go through a coordinator that is killed.
    if (text.includes('was interrupted')) return undefined
    if (!ALLOWED_CODES.includes(code) || (!repeats && code === 'idempotency_in_progress'))
      throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return undefined
  }

  async function repeat(kind: string, ...request: Parameters<typeof fleet.send>): Promise<Answer> {
    const [method, path, body, headers] = request
    return waitUntil(
      `${method} ${path} succeeds`,
      () => attempt({ kind, repeats: true }, method, path, body as Buffer | string | undefined, headers),
      LONG_DEADLINE_MS,
    )
  }

  const repeatJson = async (kind: string, method: string, path: string, body?: object) =>
    JSON.parse(
      (
        await repeat(kind, method, path, body && JSON.stringify(body), {
          'idempotency-key': randomUUID(),
          ...(body && { 'content-type': 'application/json' }),
        })
      ).body.toString(),
    )

  async function runDetached({ id }: LoadBox): Promise<void> {
    const own = ++number
    const route = `/v1/box/${id}/exec`
    const command = `echo ${own} >>detached-${seed}; for i in $(seq ${DETACHED_LINES}); do echo "${own}:$i"; sleep 0.05; done; exit 7`
    const { processId } = await repeatJson('detached', 'POST', route, { command, detached: true })
    add(commands.detached, id, own)
    const open = async (headers: Record<string, string>): Promise<IncomingMessage> => {
      const startedAt = performance.now()
      const record = (result: string, message = '') =>
        attempts.push({
          kind: 'stream',
          repeats: true,
          result,
          message,
          startedAt,
          endedAt: performance.now(),
        })
      const response = await fleet.send(
        'GET',
        `${route}/${processId}/stream?encoding=base64`,
        undefined,
        headers,
      )
      if (response.statusCode === 200) {
        record('ok')
        return response
      }
      const text = Buffer.concat(await response.toArray()).toString()
      record(readCode(text), text)
      if (!ALLOWED_CODES.includes(readCode(text))) throw new Error(`the stream: ${text}`)
      throw new Error('the stream cannot be opened yet')
    }
    const { exit, stdout, stderr } = await createResumingReader(open, abandoned.signal).done
    const lines = Array.from({ length: DETACHED_LINES }, (_, index) => `${own}:${index + 1}\n`).join('')
    const expected = { sha256: sha256(Buffer.from(lines)), bytes: lines.length }
    if (exit.exitCode !== 7 || stdout.sha256 !== expected.sha256 || stderr.bytes > 0)
      throw new Error(
        `command ${own} of ${id}: ${JSON.stringify({ exit, stdout, stderr, expected })}, started with ${processId}`,
      )
  }

  /** A plain command may not be repeated: when its response is lost, it may have run once. */
  async function runPlain({ id }: LoadBox): Promise<void> {
    const own = ++number
    const body = JSON.stringify({ command: `echo ${own} >>plain-${seed}; echo ${own}` })
    const kind = { kind: 'exec', repeats: false }
    const headers = { 'content-type': 'application/json' }
    const answer = await attempt(kind, 'POST', `/v1/box/${id}/exec`, body, headers)
    if (answer === undefined) return
    const { stdout } = JSON.parse(answer.body.toString())
    if (stdout !== `${own}\n`) throw new Error(`the output of ${own}: ${JSON.stringify(stdout)}`)
    add(commands.plain, id, own)
  }

  async function transfer({ id }: LoadBox): Promise<void> {
    const file = randomBuffer(1 + Math.floor(random() * MAX_FILE_BYTES), random)
    const path = `file-${seed}-${++number}`
    const route = `/v1/box/${id}`
    await repeat('upload', 'PUT', `${route}/upload?path=${path}`, file, { 'content-length': file.length })
    const { body } = await repeat('download', 'GET', `${route}/download?path=${path}`)
    if (!body.equals(file)) throw new Error(`${path} of ${id} has ${body.length} bytes, not ${file.length}`)
    await repeatJson('detached', 'POST', `${route}/exec`, { command: `rm -f ${path}`, detached: true })
  }

  async function readBoxes(): Promise<Box[]> {
    const { body } = await repeat('read', 'GET', '/api/v1/boxes?live=1')
    return JSON.parse(body.toString()).boxes
  }

  /** The ids of all boxes that requests have created. */
  async function listCreatedIds(): Promise<string[]> {
    const ids: string[] = []
    for (let before = ''; ; ) {
      const path = `/api/v1/audit?kind=box.create&limit=${AUDIT_PAGE}${before}`
      const { events } = JSON.parse((await repeat('read', 'GET', path)).body.toString())
      ids.push(...events.map(({ boxId }: { boxId: string }) => boxId))
      if (events.length < AUDIT_PAGE) return ids
      before = `&before=${events.at(-1).id}`
    }
  }

  async function createBox(): Promise<void> {
    const { box } = await repeatJson('create', 'POST', '/api/v1/boxes', { tier: 'nano' })
    if (created.has(box.id)) throw new Error(`two requests have got box ${box.id}`)
    created.add(box.id)
    await waitUntil(
      `box ${box.id} is running`,
      async () => (await readBoxes()).find(({ id }) => id === box.id)?.observedState === 'running',
      LONG_DEADLINE_MS,
    )
    await runPlain(box)
    await repeatJson('delete', 'DELETE', `/api/v1/boxes/${box.id}`)
  }

  /** Connects again whenever the feed ends. */
  let feed: FeedClient | undefined
  async function followFeed(): Promise<void> {
    feed = await connectFeed(t, fleet.url, fleet.authHeaders()).catch(() => undefined)
    if (feed === undefined) return void (await delay(100))
    await Promise.race([feed.closed, aborted(stopped.signal)])
  }

  async function loop(run: () => Promise<void>): Promise<void> {
    while (!stopped.signal.aborted) {
      await run()
      await delay(20 + random() * 100)
    }
  }

  const workers = [
    ...boxes.flatMap((box) => [
      loop(() => runDetached(box)),
      loop(() => runPlain(box)),
      loop(() => transfer(box)),
    ]),
    loop(createBox),
    loop(async () => void (await readBoxes())),
    loop(followFeed),
  ]
  const failed = Promise.race(workers)
  failed.catch(() => undefined)
  // A failed test must not leave loops.
  t.teardown(async () => {
    stopped.abort()
    abandoned.abort(new Error('the test has ended'))
    await Promise.allSettled(workers)
  })

  return {
    attempts,
    /** Rejects when a part of the load has failed. */
    failed,
    repeat,
    repeatJson,
    readBoxes,
    async stop(): Promise<void> {
      stopped.abort()
      await Promise.all(workers)
    },
    /** Checks that each command has run once, and each box exists once. Call it after stop(). */
    async check(): Promise<void> {
      for (const { id, hostname } of boxes)
        for (const [kind, ofBox] of Object.entries(commands)) {
          const path = `/v1/box/${id}/download?path=${kind}-${seed}`
          const { body } = await repeat('download', 'GET', path)
          const ran = body.toString().trim().split('\n').map(Number)
          t.equal(new Set(ran).size, ran.length, `${hostname}: no ${kind} command has run twice`)
          const lost = (ofBox.get(id) ?? []).filter((own) => !ran.includes(own))
          if (lost.length > 0) t.comment(`${hostname} has run, at last: ${ran.slice(-10).join(' ')}`)
          t.same(lost, [], `${hostname}: every ${kind} command has run`)
        }
      const ids = await listCreatedIds()
      t.same(
        ids.filter((id) => !boxes.some((box) => box.id === id)).sort(),
        [...created].sort(),
        'each request has created one box',
      )
      await waitUntil(
        'the created boxes are deleted',
        async () => (await readBoxes()).length === boxes.length,
      )
      const expected = boxes.map(({ id }) => id).sort()
      await waitUntil('the feed has all boxes', () => isDeepStrictEqual(listLive(feed), expected))
      const last = await waitUntil('a feed is connected', () =>
        connectFeed(t, fleet.url, fleet.authHeaders()).catch(() => undefined),
      )
      await last.ready()
      t.same(listLive(last), expected, 'a new feed has all boxes')
    },
  }
}

const listLive = (feed: FeedClient | undefined): string[] =>
  (feed?.list('boxes') ?? []).flatMap((item) =>
    (item as Box).observedState === 'terminated' ? [] : [item.id],
  )

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

function add(map: Map<string, number[]>, id: string, own: number): void {
  map.set(id, [...(map.get(id) ?? []), own])
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** The two forms of errors: of the control plane, and of the edge. */
function readCode(text: string): string {
  try {
    const { error } = JSON.parse(text)
    return typeof error === 'string' ? error : error.code
  } catch {
    return text
  }
}
