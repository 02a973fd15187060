// Whether the terminal shows characters outside ASCII.

/** The locale decides. Many containers set none: then only the console of Linux has few characters. */
export function isUnicodeSupported({ LC_ALL, LC_CTYPE, LANG, TERM }: NodeJS.ProcessEnv): boolean {
  const locale = LC_ALL || LC_CTYPE || LANG
  return locale ? /utf-?8/i.test(locale) : TERM !== 'linux'
}
