// A hostile agent runs against every edge route and every kind of report. The coordinator has a heap of fixed size, and the
// other box's requests are answered all the time.

import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type FleetBox, startFleet } from '../support/fleet.ts'
import {
  connectHostileAgent,
  FLOODS,
  flood,
  HostileReports,
  isReportRequest,
  openTunnelSocket,
  readRejection,
} from '../support/hostile-agent.ts'
import {
  CLOSING_LINES,
  createHostileReports,
  HOSTILE_RESPONSES,
  HOSTILE_RUN_ID,
  type HostileResponse,
  LARGE_RESPONSES,
} from '../support/hostile-responses.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { startTestAgent } from '../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

/** The coordinator ends when its heap exceeds this. */
const HEAP_MIB = 96
const SETTINGS = limitsEnv({ edgeRequestsPerSecond: 100_000, edgeConcurrency: 1000, edgeStreams: 1000 })
const ID = 'p_0123456789abcdef01234567'
/** For responses that may never end, from the time at which the agent has received every request. */
const OBSERVE_MS = 150
/** The coordinator repeats a start for up to 290 s while the tunnel closes before the response. */
const isStart = ([method, path, body]: RouteRequest) =>
  method === 'POST' && (path === '/prompts' || body?.includes('detached') === true)
/** Of 30 MiB. */
const LARGE_VALUE = 'value 7 in every field'
/** Responses that do not complete each request of JSON_ROUTES. Requests to a disconnected box wait until it reconnects. */
const ENDLESS_RESPONSES = new Set([
  'events without an end',
  'empty pages without an end',
  'a size without chunks',
  'a window that was not requested',
  'no response',
  LARGE_VALUE,
])
/** Between the requests to the box with a correct agent. */
const OTHER_BOX_INTERVAL_MS = 50

type RouteRequest = [method: string, path: string, body?: string]
/** Routes whose response is the agent's response. */
const JSON_ROUTES: RouteRequest[] = [
  ['POST', '/exec', '{"command":"true"}'],
  ['POST', '/exec', '{"command":"true","detached":true}'],
  ['GET', '/exec'],
  ['GET', `/exec/${ID}`],
  ['DELETE', `/exec/${ID}`],
  ['GET', '/terminal/sessions'],
  ['DELETE', '/terminal/sessions/a'],
  ['GET', '/desktop'],
  ['POST', '/desktop/start', '{}'],
  ['DELETE', '/desktop'],
  ['POST', '/desktop/stop', '{}'],
  ['GET', '/files?path=a'],
  ['PUT', '/files', '{"path":"a","content":"x"}'],
  ['PUT', '/upload?path=a', 'x'],
  ['POST', '/prompts', '{"provider":"claude","prompt":"x"}'],
  ['GET', '/prompts'],
  ['GET', '/prompts/conversations'],
  ['GET', `/prompts/${HOSTILE_RUN_ID}`],
  ['GET', `/prompts/${HOSTILE_RUN_ID}/events`],
  ['POST', `/prompts/${HOSTILE_RUN_ID}/interrupt`],
  ['POST', '/prompts/interrupt'],
]
/** Routes that may wait for a dial-back connection too. */
const ROUTES: RouteRequest[] = [
  ...JSON_ROUTES,
  ['POST', '/terminal/sessions', '{"session":"a"}'],
  ['GET', `/exec/${ID}/stream`],
  ['GET', '/download?path=a'],
  ['PUT', '/upload?path=a', 'x'.repeat(200_000)],
  ['GET', `/prompts/${HOSTILE_RUN_ID}/events?follow=1`],
  ['GET', '/prompts/events'],
]

/** A coordinator with hostile boxes, and one box with a correct agent that requests are sent to until `stop()`. */
async function setUp(t: Test, hostileBoxes: number) {
  const { fleet, coordinator, stop } = await startFleet(hostileBoxes + 1, {
    execArgv: [`--max-old-space-size=${HEAP_MIB}`, '--max-semi-space-size=1'],
    settings: SETTINGS,
  })
  t.after(stop)
  const { url, key } = fleet
  const [otherBox, ...boxes] = fleet.boxes
  if (otherBox === undefined) throw new Error('the coordinator has no box')
  const agent = await startTestAgent(otherBox, url, (router) =>
    router.add('GET', '/exec', () => ({ ok: true, type: 'exec.list', processes: [] })),
  )
  t.after(() => agent.close())

  const send = async ({ boxId }: FleetBox, [method, path, body]: RouteRequest, signal?: AbortSignal) => {
    const response = await fetch(`${url}/v1/box/${boxId}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body?.startsWith('{') ? { 'content-type': 'application/json' } : {}),
      },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.any([AbortSignal.timeout(DEADLINE_MS), ...(signal === undefined ? [] : [signal])]),
    })
    return { status: response.status, text: await response.text() }
  }

  const isRunning = () => coordinator.exitCode === null && coordinator.signalCode === null
  const stopped = new AbortController()
  const statuses = new Map<number, number>()
  const requestOtherBox = async () => {
    while (!stopped.signal.aborted) {
      const response = await fetch(`${url}/v1/box/${otherBox.boxId}/exec`, {
        headers: { authorization: `Bearer ${key}` },
      })
      await response.arrayBuffer()
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      await delay(OTHER_BOX_INTERVAL_MS)
    }
  }
  await waitUntil(
    'the other box answers',
    async () => (await send(otherBox, ['GET', '/exec'])).status === 200,
  )
  const requests = requestOtherBox()
  requests.catch(() => undefined)
  return {
    url,
    key,
    boxes,
    send,
    async checkOtherBox() {
      stopped.abort()
      await requests
      t.same([...statuses.keys()], [200], 'the other box answered every request')
      t.ok(isRunning(), 'the coordinator runs')
    },
  }
}

/** This process also runs the correct agent, which may not be delayed by 20 responses of 30 MiB at once. */
const MAX_LARGE_REQUESTS = 5

function splitRoutes(name: string): RouteRequest[][] {
  if (name !== LARGE_VALUE) return [ROUTES]
  const parts = Math.ceil(ROUTES.length / MAX_LARGE_REQUESTS)
  return Array.from({ length: parts }, (_, i) =>
    ROUTES.slice(i * MAX_LARGE_REQUESTS, (i + 1) * MAX_LARGE_REQUESTS),
  )
}

type HostileAgent = { name: string; box: FleetBox; closed: AbortSignal; received: number }

t.test('invalid responses on every edge route', async (t) => {
  const responses: [name: string, respond: HostileResponse][] = [
    ...Object.entries(HOSTILE_RESPONSES),
    ...Object.entries(LARGE_RESPONSES),
  ]
  const { url, boxes, send, checkOtherBox } = await setUp(t, responses.length)
  const request = async ({ name, box }: HostileAgent, route: RouteRequest, signal?: AbortSignal) => {
    const result = await send(box, route, signal).catch((error: Error) => error)
    const outcome = 'status' in result ? result.status : result.name
    const isExpected =
      outcome === 'AbortError' || outcome === 'TypeError' || isError(outcome) || isValid(result)
    t.ok(isExpected, `${name}: ${route.slice(0, 2).join(' ')} → ${outcome}`)
  }
  const requestAll = async (agent: HostileAgent, routes: RouteRequest[]) => {
    const { name, closed } = agent
    const isEndless = ENDLESS_RESPONSES.has(name)
    const mayEnd = (route: RouteRequest) => JSON_ROUTES.includes(route) && !isEndless && !isStart(route)
    const timeout = new AbortController()
    let isComplete = false
    const requests = Promise.all(
      routes.map((route) => request(agent, route, mayEnd(route) ? closed : timeout.signal)),
    ).finally(() => {
      isComplete = true
    })
    // Responses that do not end may delay the other requests.
    const expectedCount = agent.received + (isEndless ? 1 : routes.length)
    await waitUntil(
      `${name}: the agent has received ${expectedCount} requests or was disconnected`,
      () => isComplete || closed.aborted || agent.received >= expectedCount,
    )
    t.ok(agent.received > 0, `${name}: the agent has received requests`)
    await Promise.race([requests, delay(OBSERVE_MS)])
    timeout.abort()
    await requests
  }
  /** Each response has a box of its own: after a flood, a box may not reconnect for some time. */
  for (const [index, [name, respond]] of responses.entries()) {
    const box = boxes[index]
    if (box === undefined) throw new Error(`there is no box for ${name}`)
    const closed = new AbortController()
    const agent: HostileAgent = { name, box, closed: closed.signal, received: 0 }
    const ws = await connectHostileAgent(url, box, (request) => {
      if (isReportRequest(request)) return
      agent.received += 1
      respond(request, { url, box })
    })
    ws.once('close', () => closed.abort())
    t.after(() => ws.terminate())
    if (name in LARGE_RESPONSES) for (const route of JSON_ROUTES) await request(agent, route)
    else for (const routes of splitRoutes(name)) await requestAll(agent, routes)
    ws.terminate()
  }
  await checkOtherBox()
})

const isError = (status: unknown) => typeof status === 'number' && status >= 400 && status !== 500
/** A response that happens to be valid, or the final event of a stream. */
const isValid = (result: object) =>
  'text' in result && /^event: |^\{"ok":true|^x?$|^abc$/.test(String(result.text))

t.test('invalid reports of every type', async (t) => {
  const { url, key, boxes, checkOtherBox } = await setUp(t, 1)
  const [box] = boxes
  if (box === undefined) throw new Error('there is no hostile box')
  const lines = createHostileReports()
  const connect = (reports: HostileReports) =>
    connectHostileAgent(url, box, (request) => {
      if (isReportRequest(request)) reports.serve(request)
    })
  const reports = new HostileReports()
  for (const line of lines) void reports.write(line)
  const ws = await connect(reports)
  t.after(() => ws.terminate())
  await waitUntil('every report is acknowledged', () => reports.lastAck?.seq === lines.length)
  t.equal(ws.readyState, ws.OPEN, 'the connection stays open')
  const closed = once(ws, 'close')
  ws.terminate()
  await closed
  for (const line of CLOSING_LINES) {
    const reports = new HostileReports()
    void reports.write(line)
    const ws = await connect(reports)
    if (ws.readyState !== ws.CLOSED) await once(ws, 'close')
  }
  for (const path of ['', '/commands', '/commands?limit=200']) {
    const response = await fetch(`${url}/api/v1/boxes/${box.boxId}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    t.equal(response.status, 200, `GET ${path} works`)
  }
  await checkOtherBox()
})

t.test('floods', async (t) => {
  const floods = Object.entries(FLOODS)
  const { url, boxes, checkOtherBox } = await setUp(t, floods.length)
  for (const [index, [name, send]] of floods.entries()) {
    const box = boxes[index]
    if (box === undefined) throw new Error('there are too few hostile boxes')
    const ws = await connectHostileAgent(url, box, () => undefined)
    t.after(() => ws.terminate())
    await flood(ws, send)
    t.match(await readRejection(openTunnelSocket(url, box)), { status: 429, code: 'rate_limited' }, name)
  }
  await checkOtherBox()
})
