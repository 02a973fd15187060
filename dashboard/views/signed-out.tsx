// The session has ended while the page has a text that is not sent: where to sign in, so that the page continues.
import { isSignedOut } from '../data/live.ts'
import { resolveUrl } from '../data/navigation.ts'

export function SignedOut() {
  if (!isSignedOut.value) return null
  return (
    <>
      Your session has ended. What you have typed is kept:{' '}
      <a href={resolveUrl('sign-in').href} target="_blank" rel="noopener noreferrer">
        sign in in another tab
      </a>
      , and this page continues.
    </>
  )
}
