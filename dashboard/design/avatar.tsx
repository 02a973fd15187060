// The initials of a person. The name is beside it, or its tooltip.

/** Up to two characters: of an email address, those of its first part. */
export function getInitials(name: string): string {
  const words = (name.split('@')[0] ?? '').split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  const letters =
    words.length > 1
      ? [words[0], words.at(-1)].map((word) => [...(word ?? '')][0])
      : [...(words[0] ?? '?')].slice(0, 2)
  return letters.join('').toUpperCase()
}

export function Avatar({ name }: { name: string }) {
  return <span class="avatar" aria-hidden="true" data-initials={getInitials(name)} />
}
