// The sign-in with an emailed code. Runs in the browser, on the page /sign-in.
import { getNextUrl } from './next-path.js'
import { describeSession, find, loadSession, send } from './session.js'

const STEPS = ['start', 'code-form', 'done']
/** The secret of a link that signs in the owner once. */
const LINK_SECRET = /bwl_[\w-]+/
const nextUrl = getNextUrl(location.search, location.origin)
let codeId = ''

/** Messages have commands between backticks. */
function showError(message) {
  const parts = message.split('`').map((text, index) => {
    if (index % 2 === 0) return text
    const code = document.createElement('code')
    code.textContent = text
    return code
  })
  find('#error').replaceChildren(...parts)
}

function showStep(id) {
  for (const step of STEPS) find(`#${step}`).hidden = step !== id
  showError('')
  find(`#${id} input`)?.focus()
}

function showSession(session) {
  describeSession(find('#done'), session)
  find('#next').hidden = nextUrl === null
  if (nextUrl !== null) find('#next').href = nextUrl
  showStep('done')
}

/** Runs the action of a button or form, and shows its error. */
function handle(selector, event, action) {
  find(selector).addEventListener(event, async (event) => {
    event.preventDefault()
    const buttons = document.querySelectorAll('button')
    for (const button of buttons) button.disabled = true
    try {
      await action()
    } catch (error) {
      showError(error.message)
    } finally {
      for (const button of buttons) button.disabled = false
    }
  })
}

/** Continues after a session has started. */
async function finish() {
  const session = await loadSession()
  if (session === null)
    throw new Error('The browser did not store the session. Allow cookies for this page, and sign in again.')
  location.replace(nextUrl ?? './')
}

handle('#email-form', 'submit', async () => {
  const email = find('#email').value.trim()
  codeId = (await send('POST', 'sign-in', { email })).id
  find('.sent-to').textContent = email
  find('#code').value = ''
  showStep('code-form')
})
handle('#code-form', 'submit', async () => {
  await send('POST', 'sign-in/confirm', { id: codeId, code: find('#code').value })
  await finish()
})
async function signInAsOwner(secret) {
  await send('POST', 'sign-in/owner', { secret })
  find('#secret').value = ''
  await finish()
}
handle('#owner-form', 'submit', () => {
  const text = find('#secret').value.trim()
  // A whole link can be pasted too.
  return signInAsOwner(LINK_SECRET.exec(text)?.[0] ?? text)
})
/** A link that this browser has used before leads to the dashboard again. */
async function signInByLink(secret) {
  try {
    await signInAsOwner(secret)
  } catch (error) {
    if ((await loadSession()) === null) throw error
    location.replace(nextUrl ?? './')
  }
}
handle('#back', 'click', async () => showStep('start'))
handle('#sign-out', 'click', async () => {
  await send('DELETE', 'session')
  showStep('start')
})

async function start() {
  const [secret] = LINK_SECRET.exec(location.hash) ?? []
  try {
    if (secret !== undefined) {
      // The history of the browser must not keep the secret.
      history.replaceState(null, '', location.pathname + location.search)
      return await signInByLink(secret)
    }
    const session = await loadSession()
    if (session === null) showStep('start')
    else showSession(session)
  } catch (error) {
    showStep('start')
    showError(error.message)
  }
}

find('#insecure').hidden = isSecureContext
// A link that is opened in a tab with this page changes only the fragment.
addEventListener('hashchange', start)
await start()
