// The header User-Agent of a sign-in, in words.

const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(HeadlessChrome|Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const SYSTEMS: readonly [RegExp, string][] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]
const MAX_CHARS = 60

const find = (names: readonly [RegExp, string][], text: string) =>
  names.find(([pattern]) => pattern.test(text))?.[1]

/** Such as `Firefox on Linux`, or `box 1.0.0 on laptop`. Other programs keep the start of their own text. */
export function describeUserAgent(userAgent: string | null): string {
  if (userAgent === null) return 'unknown program'
  const [, version, host] = /^box\/(\S+) \((.*)\)$/.exec(userAgent) ?? []
  if (version !== undefined) return `box ${version} on ${host}`
  const browser = userAgent.startsWith('Mozilla/') ? find(BROWSERS, userAgent) : undefined
  const system = find(SYSTEMS, userAgent)
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`
  return userAgent.length > MAX_CHARS ? `${userAgent.slice(0, MAX_CHARS)}…` : userAgent
}
