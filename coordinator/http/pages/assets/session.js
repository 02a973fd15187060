// The requests of the pages /sign-in and /desktop. Runs in the browser.

export const find = (selector) => document.querySelector(selector)

/** Rejects with the message of an error response. */
export async function send(method, path, body) {
  const response = await fetch(`api/v1/${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (response.status === 204) return null
  const json = await response.json()
  if (!response.ok) throw Object.assign(new Error(json.message ?? json.error), { status: response.status })
  return json
}

/** Returns null without a session. */
export const loadSession = () =>
  send('GET', 'session').catch((error) => {
    if (error.status === 401) return null
    throw error
  })

/** Names the user and the workspace of a session in the element. */
export function describeSession(element, { user, workspace }) {
  element.querySelector('.user').textContent = user.email ?? user.name
  element.querySelector('.workspace').textContent = workspace.name
}
