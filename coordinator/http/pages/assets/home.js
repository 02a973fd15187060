// Shows the boxes of a signed-in user. Runs in the browser, on the page /. What the coordinator sends is inserted as text only.
import { describeSession, find, loadSession, send } from './session.js'

/** Boxes in these states accept no terminal: they can only be deleted, or are being deleted. */
const COMMANDS = {
  provision_failed: (name) => `box rm ${name}`,
  terminating: () => '',
}

function createCell(text, tag) {
  const cell = document.createElement('td')
  const content = tag === undefined ? cell : cell.appendChild(document.createElement(tag))
  content.textContent = text
  return cell
}

function createDesktopCell(name) {
  const cell = document.createElement('td')
  const link = cell.appendChild(document.createElement('a'))
  link.href = `desktop?box=${encodeURIComponent(name)}`
  link.textContent = 'open'
  link.setAttribute('aria-label', `Open the desktop of ${name}`)
  return cell
}

function createRow({ hostname, observedState, tier }) {
  const row = document.createElement('tr')
  const getCommand = COMMANDS[observedState] ?? ((name) => `box ssh ${name}`)
  const command = getCommand(hostname)
  row.append(
    createCell(hostname),
    createCell(observedState.replaceAll('_', ' ')),
    createCell(tier),
    command === '' ? createCell('') : createCell(command, 'code'),
    observedState in COMMANDS ? createCell('') : createDesktopCell(hostname),
  )
  return row
}

async function show() {
  const session = await loadSession()
  find('#session').hidden = session === null
  find('#sign-in').hidden = session !== null
  if (session === null) return
  describeSession(find('#session'), session)
  const { boxes } = await send('GET', 'boxes?live=1')
  find('#boxes tbody').replaceChildren(...boxes.map(createRow))
  find('#boxes').hidden = boxes.length === 0
  find('#no-boxes').hidden = boxes.length !== 0
}

/** Runs the action, and shows its error. */
async function run(action) {
  find('#error').textContent = ''
  try {
    await action()
  } catch (error) {
    find('#error').textContent = error.message
  }
}

find('#sign-out').addEventListener('click', () =>
  run(async () => {
    await send('DELETE', 'session')
    location.replace('sign-in')
  }),
)
// The states of the boxes may have changed, and the session may have ended, while the page was not visible.
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') run(show)
})
window.addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload()
})
await run(show)
