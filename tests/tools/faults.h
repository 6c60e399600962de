// A file system that fails on request. Linked into a test, or preloaded into the program (LD_PRELOAD), these functions
// stand between it and the system's calls on files; only files whose path contains `path` are touched.
//
// Preloaded, it is armed by its environment: FAULT_PATH, FAULT (eio, enospc, eintr, short, ends, slow), FAULT_NTH
// (which call fails, counted from 1; 0: every one), FAULT_TIMES (how many in a row), FAULT_CALLS (names between commas;
// all of them otherwise), FAULT_FROM_BYTE (reads before it are sound), FAULT_LOG (a file that gets the name of each
// call seen), FAULT_CLOCK_S (how far the wall clock jumps, back and forth, at every look).
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum fault_kind { FAULT_NONE, FAULT_EIO, FAULT_ENOSPC, FAULT_EINTR, FAULT_SHORT, FAULT_ENDS, FAULT_SLOW };

// The nth call on such a file and `times - 1` after it fail; nth 0: every one. `calls`: names between commas, or null.
void faults_arm(const char* path, enum fault_kind kind, int nth, int times, const char* calls);
void faults_disarm(void);
int faults_seen(void);    // calls on such files since it was armed
int faults_raised(void);  // of them, those that failed

#ifdef __cplusplus
}
#endif
