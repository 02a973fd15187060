// The URL on the main origin that opens a share for members without a dashboard session. The origin of the share never gets its
// code: a service worker of the app sees the URLs of all navigations there, and could use the code in another browser.

/** On the main origin. */
export const OPEN_PATH = '/share/open'

/** @param publicUrl of the coordinator, without a slash at its end */
export const createOpenUrl = (publicUrl: string, { slug, code }: { slug: string; code: string }): string =>
  `${publicUrl}${OPEN_PATH}?${new URLSearchParams({ slug, code })}`
