// Hosts of this machine: only programs of it reach them, and browsers trust their pages like https pages.

/** @param hostname of a URL: IPv6 addresses are in brackets */
export const isLoopback = (hostname: string): boolean =>
  /^(localhost|.*\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
