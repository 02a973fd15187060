// Whether a machine can use the line that enrolls it, and can trust what it downloads.

/** A problem of the URL in the line, and what to do; null: none. */
export function findUrlProblem(line: string): string | null {
  if (/https?:\/\/(localhost|127\.|\[::1\])/.test(line))
    return 'only this machine can reach the URL in the line. Set BOXWOOD_PUBLIC_URL of the coordinator to the URL that the machine can reach.'
  if (line.includes('http://'))
    return 'the URL is not https, so anyone on the network path can change the script. Put the coordinator behind TLS: see `box docs tls`.'
  return null
}
