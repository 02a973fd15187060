// The sign-in with an emailed code. Runs in the browser, on the page /sign-in.
import { getNextUrl } from './next-path.js'
import { describeSession, find, loadSession, send } from './session.js'

const STEPS = ['email-form', 'code-form', 'done']
const nextUrl = getNextUrl(location.search, location.origin)
let codeId = ''

function showError(message) {
  find('#error').textContent = message
}

function showStep(id) {
  for (const step of STEPS) find(`#${step}`).hidden = step !== id
  find('#owner').hidden = id !== 'email-form'
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
handle('#owner-form', 'submit', async () => {
  await send('POST', 'sign-in/owner', { secret: find('#secret').value.trim() })
  find('#secret').value = ''
  await finish()
})
handle('#back', 'click', async () => showStep('email-form'))
handle('#sign-out', 'click', async () => {
  await send('DELETE', 'session')
  showStep('email-form')
})

find('#insecure').hidden = isSecureContext
try {
  const session = await loadSession()
  if (session === null) showStep('email-form')
  else showSession(session)
} catch (error) {
  showStep('email-form')
  showError(error.message)
}
