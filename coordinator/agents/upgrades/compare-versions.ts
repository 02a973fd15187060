// Compares versions as Semantic Versioning 2.0.0, section 11, orders them.

/** Returns a number below 0 when `a` is older than `b`, above 0 when it is newer, and 0 when they differ at most in their builds. */
export function compareVersions(a: string, b: string): number {
  const [first, second] = [parse(a), parse(b)]
  return compareLists(first.core, second.core) || comparePrereleases(first.prerelease, second.prerelease)
}

function parse(version: string): { core: string[]; prerelease: string[] } {
  const [withoutBuild = ''] = version.split('+')
  const [core = '', ...rest] = withoutBuild.split('-')
  return { core: core.split('.'), prerelease: rest.length === 0 ? [] : rest.join('-').split('.') }
}

/** A version without a prerelease is newer than its prereleases. */
function comparePrereleases(a: string[], b: string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length
  return compareLists(a, b)
}

/** A longer list is newer when the shorter one is its begin. */
function compareLists(a: string[], b: string[]): number {
  for (const [index, part] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const order = compareIdentifiers(part, other)
    if (order !== 0) return order
  }
  return a.length - b.length
}

/** Numbers are older than words. */
function compareIdentifiers(a: string, b: string): number {
  if (a === b) return 0
  const [isNumber, isOtherNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (isNumber && isOtherNumber) return Number(a) - Number(b)
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1
  return a < b ? -1 : 1
}
