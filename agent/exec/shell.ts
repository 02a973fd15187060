// The shell that commands are run by.

export const SHELL = '/bin/sh'

/** A command that begins with - or + would be taken for options of sh. */
export const shellArguments = (command: string): string[] =>
  /^[-+]/.test(command) ? ['-c', '--', command] : ['-c', command]
