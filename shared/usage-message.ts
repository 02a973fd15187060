// The messages of commander about wrong usage, in the words of Boxwood.

/** @param message such as "error: command-argument value 'x' is invalid for argument 'state'. Allowed choices are on, off." */
export const formatUsageMessage = (message: string): string =>
  message
    .replace(/^error: /, '')
    .replace(
      /^command-argument value .* is invalid for argument '(.*)'\. Allowed choices are /,
      '$1 must be one of ',
    )
