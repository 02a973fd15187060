// Compares email addresses by the mailbox that they name.

/**
 * The address without what the owner of a mailbox can vary: the case, and a tag such as `+work`. Two addresses with the same result
 * count as one person; the sign-in distinguishes them.
 */
export function normalizeEmail(email: string): string {
  const at = email.lastIndexOf('@')
  const [mailbox] = email.slice(0, at).split('+', 1)
  return `${mailbox}${email.slice(at)}`.toLowerCase()
}
