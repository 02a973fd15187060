// Shows the desktop of a box with noVNC. Runs in the browser, on the page /desktop?box=NAME. The page uses a ticket for the box,
// because the edge does not accept the session.
import RFB from './novnc/core/rfb.js'
import { find, loadSession, send } from './session.js'

const TICKET_SECONDS = 3600
/** A ticket that expires sooner is replaced. */
const MIN_TICKET_MS = 60_000
/** A connection that ends sooner is not opened again by itself. */
const STABLE_MS = 10_000
/** While a coordinator that was reached before is restarting. */
const RETRY_MS = 2000
const MAX_RETRIES = 150

const name = new URLSearchParams(location.search).get('box') ?? ''
let box = null
let ticket = null
/** The connection; null: there is none. */
let rfb = null
/** When it was established, in milliseconds of performance.now(); null: it is not. */
let connectedAt = null

const setStatus = (text) => {
  find('#status').textContent = text
}

async function getTicket() {
  if (ticket === null || Date.parse(ticket.expiresAt) - Date.now() < MIN_TICKET_MS) {
    const created = await send('POST', `boxes/${box.id}/tickets`, { expiresInSeconds: TICKET_SECONDS })
    ticket = { secret: created.secret, expiresAt: created.ticket.expiresAt }
  }
  return ticket.secret
}

const edgePath = (path) => `v1/box/${encodeURIComponent(box.id)}${path}`

/** Rejects with the message and the code of an error response. */
async function sendEdge(method, path, body) {
  const response = await fetch(edgePath(path), {
    method,
    headers: {
      authorization: `Bearer ${await getTicket()}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const json = await response.json()
  if (!response.ok)
    throw Object.assign(new Error(json.error.message), { code: json.error.code, status: response.status })
  return json
}

function showControls(session) {
  const modes = session?.modes ?? []
  find('#controls').hidden = false
  find('#start-desktop').hidden = modes.includes('desktop')
  find('#start-browser').hidden = modes.includes('browser')
  find('#stop-browser').hidden = !(modes.includes('browser') && modes.includes('desktop'))
  find('#stop-desktop').hidden = session === null
  find('#connect').hidden = session === null || rfb !== null
}

function showConnected(isConnected) {
  for (const id of ['screen', 'clipboard', 'keyboard', 'focus', 'full-screen'])
    find(`#${id}`).hidden = !isConnected
}

function showMissing({ programs, install, installOn }) {
  const command = install.desktop ?? install.browser
  find('#missing').hidden = command === null
  if (command === null) return
  const missing = programs.filter(({ program }) => program === null)
  find('#missing .packages').textContent = missing.map((program) => program.package).join(', ')
  find('#missing .where').textContent =
    installOn === 'coordinator'
      ? 'on the machine of the coordinator, whose programs the box uses'
      : 'on the box'
  const lines = [...new Set([install.desktop, install.browser])].filter((line) => line !== null)
  find('#missing pre').textContent = lines.join('\n')
}

/** Reads the state of the desktop. @returns the running session; null: there is none */
async function refresh() {
  const status = await sendEdge('GET', '/desktop').catch((error) => {
    if (error.code !== 'box_not_running') throw error
    setStatus('The box is suspended. A start wakes it.')
    return null
  })
  const session = status?.session ?? null
  if (status !== null) {
    showMissing(status)
    if (session === null) setStatus('No desktop is running.')
  }
  showControls(session)
  return session
}

/** Without a response, or with the response of a proxy, of a coordinator that is stopping, or before the agent has connected. */
const isUnreachable = ({ status }) => status === undefined || status >= 502

/** Like refresh(), but waits for the coordinator and the agent of the box. */
async function refreshWhenReachable() {
  for (let retries = 0; ; retries++) {
    try {
      return await refresh()
    } catch (error) {
      if (retries === MAX_RETRIES || !isUnreachable(error)) throw error
      setStatus('The connection has ended. Waiting for the coordinator…')
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

async function connect() {
  if (rfb !== null) return
  const url = new URL(edgePath('/desktop/stream'), location.href)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const protocols = ['boxwood', `boxwood.ticket.${await getTicket()}`]
  showConnected(true)
  setStatus('Connecting…')
  const opened = new RFB(find('#screen'), url.href, { wsProtocols: protocols })
  rfb = opened
  connectedAt = null
  opened.scaleViewport = true
  opened.addEventListener('connect', () => {
    connectedAt = performance.now()
    setStatus('Connected.')
    find('#connect').hidden = true
  })
  opened.addEventListener('clipboard', ({ detail }) => {
    find('#clipboard-text').value = detail.text
  })
  opened.addEventListener('disconnect', () => {
    if (rfb !== opened) return
    rfb = null
    clearTimeout(clipboardTimer)
    showConnected(false)
    find('#connect').hidden = false
    // Such as at the end of the ticket, or of the coordinator.
    const reconnects = connectedAt !== null && performance.now() - connectedAt > STABLE_MS
    run(async () => {
      const session = await (reconnects ? refreshWhenReachable() : refresh())
      if (session === null) return
      setStatus('The connection to the desktop has ended.')
      if (reconnects) await connect()
    })
  })
}

/** x11vnc ignores the text of viewers in its first 15 seconds. */
const CLIPBOARD_READY_MS = 18_000
let clipboardTimer

/** Sends the text when x11vnc accepts it. */
function copyToBox(target, text) {
  clearTimeout(clipboardTimer)
  if (target === null || connectedAt === null) return
  const waitMs = connectedAt + CLIPBOARD_READY_MS - performance.now()
  if (waitMs <= 0) return target.clipboardPasteFrom(text)
  setStatus('The box gets the text in a few seconds.')
  clipboardTimer = setTimeout(() => {
    if (rfb !== target) return
    target.clipboardPasteFrom(text)
    setStatus('Connected.')
  }, waitMs)
}

async function start(mode) {
  setStatus('Starting…')
  // The screen of a start that fails shows what is running.
  try {
    await sendEdge('POST', '/desktop/start', { mode })
  } catch (error) {
    await refresh()
    throw error
  }
  await refresh()
  await connect()
}

async function stop(mode) {
  setStatus('Stopping…')
  await sendEdge('DELETE', `/desktop?mode=${mode}`)
  const session = await refresh()
  if (session !== null) setStatus('Connected.')
}

/** Runs the action with the buttons disabled, and shows its error. The focus stays in the group of the buttons. */
async function run(action) {
  const buttons = [...document.querySelectorAll('#controls button')]
  const focused = buttons.find((button) => button === document.activeElement)
  find('#error').textContent = ''
  for (const button of buttons) button.disabled = true
  try {
    await action()
  } catch (error) {
    setStatus('')
    find('#error').textContent = error.message
  } finally {
    for (const button of buttons) button.disabled = false
    if (focused && document.activeElement === document.body)
      (focused.hidden ? buttons.find((button) => !button.hidden) : focused)?.focus()
  }
}

const onClick = (id, action) => find(`#${id}`).addEventListener('click', () => run(action))
onClick('start-desktop', () => start('desktop'))
onClick('start-browser', () => start('browser'))
onClick('stop-browser', () => stop('browser'))
onClick('stop-desktop', () => stop('desktop'))
onClick('connect', connect)
onClick('focus', async () => rfb?.focus())
onClick('full-screen', () => find('#screen').requestFullscreen())
onClick('copy-to-box', async () => copyToBox(rfb, find('#clipboard-text').value))

addEventListener(
  'keydown',
  (event) => {
    if (rfb === null || event.key !== 'Escape' || !event.ctrlKey || !event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    // Releases the other keys on the box: noVNC does not get the events that follow.
    rfb.viewOnly = true
    rfb.viewOnly = false
    rfb.blur()
    find('#focus').focus()
  },
  true,
)

async function load() {
  const session = await loadSession()
  if (session === null) {
    location.replace(`sign-in?next=${encodeURIComponent(location.pathname + location.search)}`)
    return
  }
  const { boxes } = await send('GET', 'boxes?live=1')
  box = boxes.find(({ id, hostname }) => hostname === name || id === name) ?? null
  if (box === null)
    throw new Error(
      name === ''
        ? 'The address has no box. Add ?box= and its name.'
        : `There is no box ${name} in this workspace.`,
    )
  find('#box').textContent = box.hostname
  document.title = `Desktop of ${box.hostname} · Boxwood`
  showConnected(false)
  if ((await refresh()) !== null) await connect()
}

await run(load)
