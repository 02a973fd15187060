// What the coordinator has sent: the session, the boxes, and whether the feed is connected.

import { batch, signal } from '@preact/signals'
import type { BoxwoodError } from '../../client/http/errors.ts'
import { openSocket } from '../../client/http/socket.ts'
import { createFetchTransport, type Transport } from '../../client/http/transport.ts'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import type { Client } from '../api/client.ts'
import { createClient } from '../api/client.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { ABNORMAL_CODE, createFeed, type Feed } from '../api/feed.ts'
import { type Boxes, createItemCollector, type Items } from './items.ts'
import { loadDocumentAtNextNavigation, resolveUrl } from './navigation.ts'
import { hasUnsent } from './unsent.ts'

export const session = signal<CurrentSession | null>(null)
/** Null until the first snapshot is complete. */
export const boxes = signal<Boxes | null>(null)
/** Null until the first snapshot of the feed is complete. */
export const snapshots = signal<Items['snapshots'] | null>(null)
/** The deletions of boxes and snapshots that have not ended, or have failed. */
export const operations = signal<Items['operations']>(new Map())
/** Why the first request has failed. */
export const startError = signal<BoxwoodError | null>(null)
/** When the feed has sent its last message, by the clock of the coordinator; null: the feed is connected. */
export const lostSince = signal<number | null>(null)
/** The tab was hidden or the device was asleep, and the feed is connecting for the first time since. */
export const isReturning = signal(false)
/** Counts how often the other connections of this tab may have been lost without a notice. */
export const losses = signal(0)
/** The session has ended while the page has a text that is not sent. The page continues after a sign-in in another tab. */
export const isSignedOut = signal(false)
/** The coordinator serves another build of the dashboard. */
export const isOutdated = signal(false)
/** The time of the coordinator, which advances every few seconds. */
export const now = signal(Date.now())

/** By how much the clock of the coordinator is ahead of the one of this device, in milliseconds. Null: not known yet. */
let offset: number | null = null
export const getCoordinatorTime = (): number => Date.now() + (offset ?? 0)

/** @param at the time of the coordinator */
function setTime(at: string): void {
  const ms = Date.parse(at)
  if (Number.isNaN(ms)) return
  offset = ms - Date.now()
  now.value = ms
}

/** The first response has the time of the coordinator in seconds; the messages of the feed are more precise. */
const fetchTransport = createFetchTransport()
const transport: Transport = {
  async send(request) {
    const response = await fetchTransport.send(request)
    if (offset === null) setTime(response.headers.get('date') ?? '')
    return response
  },
}

const TICK_MS = 5_000
/** The clock of timers may stop while the device is asleep: a check follows this soon after it. */
const CHECK_MS = 500
/** Checks of a device that is awake are closer to each other, also in a slow tab. */
const ASLEEP_MS = 30_000
/** A hidden tab keeps its connection for this long. */
const HIDDEN_MS = 5_000

let client: Client | null = null
export function getClient(): Client {
  client ??= createClient({
    base: resolveUrl('').href,
    transport,
  })
  return client
}

export async function startStore(): Promise<void> {
  startError.value = null
  try {
    session.value = await getClient().loadSession()
  } catch (error) {
    startError.value = toBoxwoodError(error)
    return
  }
  if (session.value === null) {
    openSignIn()
    return
  }
  feed = openFeed()
  followFeed(feed)
  followSignIns()
}

/** The user ends the session: what the server closes because of it is no loss. */
let isSigningOut = false

/** Opens the sign-in page. It returns to this page, unless the user has signed out: the next user may be another one. */
function openSignIn(): void {
  const { pathname, search, hash } = location
  const query = isSigningOut ? '' : `?next=${encodeURIComponent(pathname + search + hash)}`
  location.replace(resolveUrl(`sign-in${query}`))
}

/** Ends the session, and opens the sign-in page. Rejects with BoxwoodError; the session then continues. */
export async function signOut(): Promise<void> {
  isSigningOut = true
  try {
    await getClient().signOut()
  } catch (error) {
    isSigningOut = false
    // The session has ended if only the response was lost.
    void checkSession(false)
    throw error
  }
  openSignIn()
}

let feed: Feed | null = null

/** Other tabs announce that they have a session. The user may have signed in on another page, too, and returns to this tab. */
function followSignIns(): void {
  const channel = new BroadcastChannel(resolveUrl('').pathname)
  const check = () => void (isSignedOut.value && checkSession(false))
  channel.onmessage = check
  channel.postMessage('session')
  window.addEventListener('focus', check)
}

function openFeed(): Feed {
  let collect = createItemCollector(() => undefined)
  let lastMessageAt = getCoordinatorTime()
  const opened = createFeed({
    connect({ onMessage, onClose }) {
      const url = resolveUrl('api/v1/feed?live=1')
      const controller = new AbortController()
      const handlers = { onMessage: (data: unknown) => onMessage(String(data)), onClose }
      openSocket(url.href, [], handlers, controller.signal).catch(() => onClose(ABNORMAL_CODE))
      return { close: () => controller.abort() }
    },
    setTimer(run, ms) {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    random: Math.random,
    onBegin() {
      collect = createItemCollector((changed) =>
        batch(() => {
          if (changed.boxes) boxes.value = changed.boxes
          if (changed.snapshots) snapshots.value = changed.snapshots
          if (changed.operations) operations.value = changed.operations
        }),
      )
    },
    onMessage(message) {
      if (message.type !== 'items') setTime(message.at)
      lastMessageAt = getCoordinatorTime()
      collect(message)
      if (message.type !== 'ready') return
      batch(() => {
        if (lostSince.value !== null && !isReturning.value) losses.value += 1
        lostSince.value = null
        isReturning.value = false
        isSignedOut.value = false
      })
      void checkBuild()
    },
    onLost({ isRefused }) {
      lostSince.value ??= lastMessageAt
      isReturning.value = false
      void checkSession(isRefused)
    },
  })
  return {
    open() {
      // What is shown is old until the feed is complete.
      if (boxes.value !== null && lostSince.value === null) {
        lostSince.value = lastMessageAt
        isReturning.value = true
      }
      opened.open()
    },
    close: opened.close,
  }
}

/** A connection that fails does not say that the session has ended. @param isRefused the session of this page has no access any more */
async function checkSession(isRefused: boolean): Promise<void> {
  const current = await getClient()
    .loadSession()
    .catch(() => undefined)
  if (isSigningOut) return
  // The browser may have signed in again, or has switched to another workspace.
  const isAnother = current?.session.id !== session.value?.session.id
  if (current && isAnother) {
    if (session.value !== null && seesTheSame(current, session.value)) {
      session.value = current
      feed?.open()
    } else location.reload()
  } else if (current === null || isRefused) {
    if (hasUnsent()) isSignedOut.value = true
    else openSignIn()
  }
}

const seesTheSame = (a: CurrentSession, b: CurrentSession): boolean =>
  a.user.id === b.user.id && a.user.role === b.user.role && a.workspace.id === b.workspace.id

/** Connects while the tab is visible, and again after the device was asleep: the connection may be lost without a notice. */
function followFeed(feed: Feed): void {
  let isOpen = false
  let closing: ReturnType<typeof setTimeout> | undefined
  let checkedAt = Date.now()
  const open = () => {
    isOpen = true
    feed.open()
  }
  const close = () => {
    isOpen = false
    feed.close()
  }
  const check = () => {
    const at = Date.now()
    const wasAsleep = at - checkedAt > ASLEEP_MS
    checkedAt = at
    const time = getCoordinatorTime()
    if (wasAsleep || time - now.value >= TICK_MS) now.value = time
    if (!wasAsleep || !isOpen || document.visibilityState !== 'visible') return
    feed.close()
    feed.open()
    losses.value += 1
  }
  const update = () => {
    clearTimeout(closing)
    if (document.visibilityState !== 'visible') {
      closing = setTimeout(close, HIDDEN_MS)
      return
    }
    check()
    now.value = getCoordinatorTime()
    if (!isOpen) open()
  }
  setInterval(check, CHECK_MS)
  document.addEventListener('visibilitychange', update)
  update()
}

/** The coordinator may have been upgraded while the feed was not connected. */
async function checkBuild(): Promise<void> {
  const own = document.querySelector<HTMLMetaElement>('meta[name=boxwood-build]')?.content
  const current = await getClient()
    .loadBuildId()
    .catch(() => null)
  if (current === null || current === own) return
  isOutdated.value = true
  loadDocumentAtNextNavigation()
}
