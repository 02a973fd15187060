// The shell that runs commands.

export const SHELL = '/bin/sh'

/** `--` protects a command that starts with - or + from being parsed as options of sh. */
export const shellArguments = (command: string): string[] =>
  /^[-+]/.test(command) ? ['-c', '--', command] : ['-c', command]
