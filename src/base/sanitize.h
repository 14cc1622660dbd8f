/* SPDX-License-Identifier: MIT */
/* Which sanitizer this is built with, for gcc (macros) and clang (features) alike. */
#ifndef UZ_BASE_SANITIZE_H
#define UZ_BASE_SANITIZE_H

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define UZ_TSAN 1
#else
#define UZ_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define UZ_ASAN 1
#else
#define UZ_ASAN 0
#endif

#endif
